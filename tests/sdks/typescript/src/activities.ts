import { activityInfo, ApplicationFailure } from '@temporalio/activity';

/** Fails twice; the third attempt gives its own number. */
export async function stumble(): Promise<number> {
  const { attempt } = activityInfo();
  if (attempt < 3) throw ApplicationFailure.create({ message: `stumbled ${attempt}`, type: 'Stumble' });
  return attempt;
}

import * as wf from '@temporalio/workflow';
import type * as activities from './activities';

/** What a run hands to the next one and, at the end of the chain, to its caller. */
export interface State {
  round: number;
  words: string[];
  total: number;
  attempts: number;
  shout: string;
}

const { stumble } = wf.proxyActivities<typeof activities>({
  startToCloseTimeout: '10s',
  retry: { initialInterval: '50ms', backoffCoefficient: 1, maximumAttempts: 5 },
});

export const say = wf.defineSignal<[string]>('say');
export const finish = wf.defineSignal('finish');
export const words = wf.defineQuery<string[]>('words');
export const add = wf.defineUpdate<number, [number]>('add');

export async function Shout(word: string): Promise<string> {
  return word.toUpperCase();
}

export async function Tour(state: State): Promise<State> {
  if (state.round > 1) return state;
  let finished = false;
  wf.setHandler(say, (word) => void state.words.push(word));
  wf.setHandler(finish, () => void (finished = true));
  wf.setHandler(words, () => state.words);
  wf.setHandler(add, (amount) => (state.total += amount), {
    validator: (amount) => {
      if (amount < 0) throw wf.ApplicationFailure.create({ message: 'negative amount', type: 'Negative' });
    },
  });
  await wf.condition(() => finished);

  state.attempts = await stumble();
  await wf.sleep('50ms');
  state.shout = await wf.executeChild(Shout, {
    args: [state.words[0]],
    workflowId: `${wf.workflowInfo().workflowId}-shout`,
  });
  return await wf.continueAsNew<typeof Tour>({ ...state, round: state.round + 1 });
}

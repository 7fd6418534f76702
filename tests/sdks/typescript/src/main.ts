// One tour of the server, and a JSON line with what was seen: main.js ADDRESS TASK_QUEUE WORKFLOW_ID CACHED_WORKFLOWS
import { join } from 'node:path';
import { Client, Connection, WorkflowUpdateFailedError } from '@temporalio/client';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import * as activities from './activities';
import * as workflows from './workflows';

async function tour(client: Client, taskQueue: string, workflowId: string): Promise<object> {
  const state: workflows.State = { round: 1, words: [], total: 0, attempts: 0, shout: '' };
  const handle = await client.workflow.start(workflows.Tour, { args: [state], taskQueue, workflowId });
  await handle.signal(workflows.say, 'hello');
  const queried = await handle.query(workflows.words);
  const updated = await handle.executeUpdate(workflows.add, { args: [5] });
  const rejected = await handle.executeUpdate(workflows.add, { args: [-1] }).then(
    () => 'nothing',
    (error: unknown) => {
      if (!(error instanceof WorkflowUpdateFailedError)) throw error;
      return error.cause?.message;
    },
  );
  await handle.signal(workflows.finish);
  return { first_run_id: handle.firstExecutionRunId, queried, updated, rejected, result: await handle.result() };
}

async function main(address: string, taskQueue: string, workflowId: string, cached: number): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  const connection = await NativeConnection.connect({ address });
  const clientConnection = await Connection.connect({ address });
  try {
    const worker = await Worker.create({
      connection,
      taskQueue,
      activities,
      maxCachedWorkflows: cached,
      workflowBundle: { codePath: join(__dirname, 'bundle.workflows.js') },
    });
    const client = new Client({ connection: clientConnection });
    const seen = await worker.runUntil(tour(client, taskQueue, workflowId));
    console.log(JSON.stringify(seen));
  } finally {
    await clientConnection.close();
    await connection.close();
  }
}

const [address, taskQueue, workflowId, cached] = process.argv.slice(2);
main(address, taskQueue, workflowId, Number(cached)).catch((error) => {
  console.error(error);
  process.exit(1);
});

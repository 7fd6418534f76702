// Bundles the workflows at build time, so that a test's worker starts without doing it: bundle.js WORKFLOWS BUNDLE
import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { bundleWorkflowCode } from '@temporalio/worker';

const [workflows, bundle] = process.argv.slice(2);

bundleWorkflowCode({ workflowsPath: resolve(workflows) })
  .then(({ code }) => writeFile(bundle, code))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });

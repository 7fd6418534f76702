// A batch's page shows how far the batch has come. Without this file it shows the moment when it was loaded.
(() => {
  "use strict";
  const EVERY_MS = 1000;
  const progress = document.getElementById("a-progress");
  if (!progress) return;
  const runs = () => document.getElementById("a-state")?.dataset.state === "Running";
  const refresh = async () => {
    try {
      const answer = await fetch(progress.dataset.part, { credentials: "same-origin", redirect: "error" });
      if (answer.ok) progress.innerHTML = await answer.text();
    } catch {
      // The server is away for a moment.
    }
    if (runs()) setTimeout(refresh, EVERY_MS);
  };
  if (runs()) setTimeout(refresh, EVERY_MS);
})();

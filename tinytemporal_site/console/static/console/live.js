// A run's page follows the run: server-sent events say that it has changed, and the part that moves is fetched again.
// Without this file the page shows the moment when it was loaded.
(() => {
  "use strict";
  const note = document.getElementById("x-following");
  const moving = document.getElementById("x-moving");
  if (!note || !moving || "ended" in note.dataset || !window.EventSource) return;

  const REST_MS = 500; // between two fetches for a run that changes all the time
  const rest = () => new Promise((go) => setTimeout(go, REST_MS));
  let fetching = false;
  let again = false;
  const say = (text, isOn) => {
    if (note.textContent !== text) note.textContent = text;
    note.classList.toggle("x-on", isOn);
  };

  // What the reader has opened, and where the keyboard is, stay.
  const replace = (html) => {
    const open = [...moving.querySelectorAll("details[open][id]")].map((one) => one.id);
    const active = document.activeElement;
    const focused = active && moving.contains(active) ? active.closest("[id]")?.id : "";
    moving.innerHTML = html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    const target = focused && document.getElementById(focused);
    if (target) (target.querySelector("summary") || target).focus({ preventScroll: true });
  };

  const refresh = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      do {
        again = false;
        const answer = await fetch(note.dataset.part, { credentials: "same-origin", redirect: "error" });
        if (answer.ok) replace(await answer.text());
        await rest();
      } while (again);
    } catch {
      // The stream says when the server is back.
    } finally {
      fetching = false;
    }
  };

  const source = new EventSource(`${note.dataset.live}?seen=${encodeURIComponent(note.dataset.seen)}`);
  source.addEventListener("open", () => say("Following: the page shows what happens as it happens.", true));
  source.addEventListener("error", () => say("Not connected; trying again.", false));
  source.addEventListener("changed", refresh);
  source.addEventListener("ended", async () => {
    source.close();
    await refresh();
    say("It has ended.", false);
  });
  source.addEventListener("gone", () => {
    source.close();
    say("It has been deleted.", false);
  });
  window.addEventListener("pagehide", () => source.close());
})();

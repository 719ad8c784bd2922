// A click is lost if its button is drawn anew between press and release. So answers that draw wait for the release.

let pressed = false;
let waiting = [];

function release() {
  pressed = false;
  setTimeout(() => { // after the click, which follows the release
    if (pressed) return;
    const ready = waiting;
    waiting = [];
    ready.forEach((work) => queueMicrotask(work)); // so that one that fails does not keep the others
  });
}

addEventListener("pointerdown", () => { pressed = true; }, true);
addEventListener("pointerup", release, true);
addEventListener("pointercancel", release, true);
addEventListener("blur", release); // of the window: its release is not heard

// Calls `work` now, or once nothing is pressed any more.
export function whenReleased(work) {
  if (pressed || waiting.length) waiting.push(work);
  else work();
}

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

// What has a list or a text of its own is not drawn anew, and its list may take the release.
function press(event) {
  if (!event.target.closest?.("select, input, textarea")) pressed = true;
}

addEventListener("pointerdown", (event) => event.isPrimary && event.button === 0 && press(event), true);
addEventListener("keydown", (event) => event.key === " " && press(event), true); // a button is clicked on its release
for (const end of ["pointerup", "pointercancel", "keyup", "contextmenu"]) addEventListener(end, release, true);
// the window has lost its focus, or the mouse was released where it was not heard
addEventListener("blur", release);
addEventListener("pointermove", (event) => pressed && event.pointerType === "mouse" && !event.buttons && release(), true);

// Calls `work` now, or once nothing is pressed any more.
export function whenReleased(work) {
  if (pressed || waiting.length) waiting.push(work);
  else work();
}

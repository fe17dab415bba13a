/* The divider between two layers that lie on one another: dragged, or moved with the arrow keys.

   HushMapSwipe.create(stage, on, onMove): `on` adds a listener that is removed with the map; onMove(share) is called with the place of the
   divider, 0 at the left and 1 at the right. The returned function shows it at a place, or hides it (null). */

"use strict";

const HushMapSwipe = (() => {
  const STEP = 0.02, LARGE_STEP = 0.1;

  function create(stage, on, onMove) {
    const divider = document.createElement("div");
    divider.className = "hush-map-divider";
    divider.append(Object.assign(document.createElement("span"), { className: "hush-map-handle" }));
    divider.tabIndex = 0;
    for (const [name, value] of Object.entries({ role: "slider", "aria-label": "Divider between the two maps", "aria-valuemin": "0", "aria-valuemax": "100" })) divider.setAttribute(name, value);
    stage.append(divider);
    let at = 0.5;

    const move = (share) => onMove(Math.min(Math.max(share, 0), 1));
    on(divider, "pointerdown", (event) => {
      divider.setPointerCapture(event.pointerId);
      event.preventDefault();
      divider.focus();
    });
    on(divider, "pointermove", (event) => {
      if (!divider.hasPointerCapture(event.pointerId)) return;
      const box = stage.getBoundingClientRect();
      move((event.clientX - box.left) / box.width);
    });
    on(divider, "keydown", (event) => {
      const steps = { ArrowLeft: -STEP, ArrowDown: -STEP, ArrowRight: STEP, ArrowUp: STEP, PageDown: -LARGE_STEP, PageUp: LARGE_STEP, Home: -1, End: 1 };
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(at + steps[event.key]);
    });

    return (share, [left, right] = ["", ""]) => {
      divider.hidden = share === null;
      if (share === null) return;
      at = share;
      divider.style.left = `${100 * share}%`;
      divider.setAttribute("aria-valuenow", Math.round(100 * share));
      divider.setAttribute("aria-valuetext", `${Math.round(100 * share)} % ${left}, ${Math.round(100 - 100 * share)} % ${right}`);
    };
  }

  return { create };
})();

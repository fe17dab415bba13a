/* What lies beneath the map: water, parks and borders of districts, from {x, y, starts, kinds}; ring or line r has the corners starts[r] to
   starts[r + 1]. Kinds: 0 water, 1 park, 2 district (areas); 3, 4 and 5 are the same as lines. */

"use strict";

const HushMapBackdrop = (() => {
  const KINDS = ["water", "park", "district"];

  function trace(context, { x, y, starts }, r, place) {
    context.moveTo(place.x + place.scale * x[starts[r]], place.y - place.scale * y[starts[r]]);
    for (let k = starts[r] + 1; k < starts[r + 1]; k++) context.lineTo(place.x + place.scale * x[k], place.y - place.scale * y[k]);
  }

  /* Draws in the order parks, water, borders, so that ponds lie on parks. */
  function draw(context, backdrop, place, inks) {
    for (const kind of [1, 0, 2]) {
      context.beginPath();
      backdrop.kinds.forEach((one, r) => {
        if (one !== kind) return;
        trace(context, backdrop, r, place);
        context.closePath();
      });
      [context.fillStyle, context.strokeStyle, context.lineWidth] = [inks[KINDS[kind]], inks[KINDS[kind]], kind === 2 ? 1 : 0.75];
      if (kind < 2) context.fill(); // holes turn the other way round
      context.stroke();
      context.beginPath();
      backdrop.kinds.forEach((one, r) => one === kind + 3 && trace(context, backdrop, r, place));
      context.lineWidth = kind === 0 ? 2 : 1;
      context.stroke();
    }
  }

  return { draw };
})();

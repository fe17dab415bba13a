/* Drawing of the map: lines, zones and pixels, the legend and the scale bar. Functions without state. */

"use strict";

const HushMapPaint = (() => {
  const { HALF, NONE } = HushMapColours;
  const { round125, roundUp, short } = HushMapText;

  // ---- drawing ---------------------------------------------------------------------------------------------------------

  /* Draws the lines of one map, colour by colour: values near zero first, so that large values are on top. */
  function strokes(context, graph, visible, levels, palette, place, ink) {
    const { x, y, ends, bends } = graph;
    const [first, sorted] = [new Uint32Array(2 * HALF + 3), new Uint32Array(visible.length)];
    for (const e of visible) first[levels[e] + 1]++;
    for (let k = 0; k < first.length - 1; k++) first[k + 1] += first[k];
    const next = first.slice();
    for (const e of visible) sorted[next[levels[e]]++] = e;
    const order = [NONE, HALF]; // no value, zero, then outwards
    for (let k = 1; k <= HALF; k++) order.push(HALF - k, HALF + k);
    context.lineCap = "round";
    for (const level of order) {
      if (first[level] === first[level + 1]) continue;
      context.beginPath();
      for (let k = first[level]; k < first[level + 1]; k++) {
        const i = ends[2 * sorted[k]], j = ends[2 * sorted[k] + 1];
        context.moveTo(place.x + place.scale * x[i], place.y - place.scale * y[i]);
        const line = bends?.line[sorted[k]] ?? -1; // nodes without edges have none
        if (line >= 0) for (let b = bends.starts[line]; b < bends.starts[line + 1]; b++) context.lineTo(place.x + place.scale * bends.x[b], place.y - place.scale * bends.y[b]);
        context.lineTo(place.x + place.scale * x[j], place.y - place.scale * y[j]);
      }
      context.strokeStyle = palette.css[level] ?? palette.none;
      const size = level > 2 * HALF ? 0 : (level - HALF) / HALF;
      context.lineWidth = ink * (1 + 1.9 * (palette.diverges ? Math.abs(size) : Math.max(size, 0)) ** 1.3);
      context.stroke();
    }
  }

  /* Fills the zones of one map, colour by colour, then draws thin lines between them. */
  function fills(context, graph, visible, levels, palette, place, ink) {
    const { x, y, starts } = graph.outlines;
    const zones = new Map();
    for (const i of visible) zones.set(levels[i], [...(zones.get(levels[i]) ?? []), i]);
    const trace = (i) => {
      for (let r = graph.firstRing[i]; r < graph.firstRing[i + 1]; r++) {
        context.moveTo(place.x + place.scale * x[starts[r]], place.y - place.scale * y[starts[r]]);
        for (let k = starts[r] + 1; k < starts[r + 1]; k++) context.lineTo(place.x + place.scale * x[k], place.y - place.scale * y[k]);
        context.closePath();
      }
    };
    for (const [level, members] of zones) {
      context.beginPath();
      members.forEach(trace);
      context.fillStyle = palette.css[level] ?? palette.none;
      context.fill("evenodd"); // zones do not overlap, and holes are rings of their zone
    }
    context.beginPath();
    visible.forEach(trace);
    [context.strokeStyle, context.lineWidth, context.lineJoin] = [palette.between, ink, "round"];
    context.stroke();
  }

  /* The mean value of all lines that cross a pixel, for all maps at once; their maximum would exaggerate the noise. */
  function raster(graph, visible, means, place, wide, high) {
    const { x, y, ends } = graph;
    const sums = means.map(() => new Float32Array(wide * high));
    const counts = means.map(() => new Uint16Array(wide * high));
    for (const e of visible) {
      const i = ends[2 * e], j = ends[2 * e + 1];
      const fromX = place.x + place.scale * x[i], fromY = place.y - place.scale * y[i];
      const alongX = place.scale * (x[j] - x[i]), alongY = -place.scale * (y[j] - y[i]);
      const steps = Math.ceil(Math.max(Math.abs(alongX), Math.abs(alongY))) || 1;
      for (let k = 0; k < steps; k++) {
        const column = Math.floor(fromX + (alongX * k) / steps), row = Math.floor(fromY + (alongY * k) / steps);
        if (column < 0 || row < 0 || column >= wide || row >= high) continue;
        const at = row * wide + column;
        for (let p = 0; p < means.length; p++) {
          const value = means[p][e];
          if (value === value && counts[p][at] < 65535) {
            sums[p][at] += value;
            counts[p][at]++;
          }
        }
      }
    }
    return sums.map((sum, p) => sum.map((v, at) => (counts[p][at] ? v / counts[p][at] : NaN)));
  }

  // ---- beside the map --------------------------------------------------------------------------------------------------

  /* Draws the colours of a range into the canvas `ramp` and their values into the block `ticks`. */
  function legend(ramp, ticks, { layers, range, fixed, palette }) {
    const [least, most] = [Math.min(...layers.map(({ span }) => span.least)), Math.max(...layers.map(({ span }) => span.most))];
    const low = fixed || palette.diverges ? range[0] : Math.max(range[0], least < 0 ? -roundUp(-least) : 0), high = range[1];
    const spot = (v) => Math.sign(v) * palette.bend(Math.abs(v) / (v < 0 ? -range[0] || 1 : high));
    const share = (v) => (spot(v) - spot(low)) / (spot(high) - spot(low) || 1);
    [ramp.width, ramp.height] = [256, 1];
    const pen = ramp.getContext("2d");
    for (let k = 0; k < 256; k++) {
      pen.fillStyle = palette.css[HALF + Math.round(HALF * (spot(low) + (k / 255) * (spot(high) - spot(low))))];
      pen.fillRect(k, 0, 1, 1);
    }
    const marks = [[high, most > high ? `${short(high)} or more` : short(high)]];
    if (low < 0 && share(0) > 0.2) marks.unshift([low, least < low && share(0) > 0.4 ? `${short(low)} or less` : short(low)]);
    if (low <= 0) marks.push([0, "0"]);
    else marks.unshift([low, short(low)]);
    const middle = round125(high / (palette.bend === Math.sqrt ? 4 : 2));
    if (share(middle) - share(Math.max(0, low)) > 0.14 && share(middle) < 0.6) marks.push([middle, short(middle)]);
    ticks.replaceChildren();
    for (const [v, text] of marks) {
      const tick = document.createElement("span");
      tick.className = "hush-map-tick";
      tick.textContent = text;
      tick.style.left = `${100 * share(v)}%`;
      tick.style.transform = share(v) > 0.9 ? "translateX(-100%)" : share(v) < 0.1 ? "none" : "translateX(-50%)";
      ticks.append(tick);
    }
  }

  /* Metres in one unit of x at the middle of the view: a degree of longitude is shorter near the poles. */
  function metresPerUnit({ metres, latitude }, y) {
    if (!metres || !latitude) return metres;
    const cosine = (degrees) => Math.cos((Math.min(Math.abs(degrees), 89.9) * Math.PI) / 180);
    return (metres * cosine(latitude.south + y / latitude.degree)) / cosine(latitude.true);
  }

  /* Draws a scale bar of a round length, if lengths are known; `element` holds the bar and its text. */
  function ruler(element, graph, view, scale) {
    const unit = metresPerUnit(graph, view.y);
    element.hidden = !unit;
    if (element.hidden) return;
    const metres = round125((90 * unit) / scale);
    const text = metres >= 1000 ? `${(metres / 1000).toLocaleString("en-GB")} km` : `${metres} m`;
    element.firstChild.style.width = `${(metres / unit) * scale}px`;
    element.lastChild.textContent = text;
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `Scale bar: ${text}`);
  }

  return { strokes, fills, raster, legend, ruler };
})();

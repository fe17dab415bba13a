/* Drawing of the map: colours of values, lines and pixels, the legend and the scale bar. Functions without state. */

"use strict";

const HushMapPaint = (() => {
  const HALF = 64; // colours on either side of zero
  const NONE = 2 * HALF + 1; // the level of an edge without a value
  const SCHEMES = {
    signed: {
      below: ["#3f78a8", "#7ba3c4", "#a9bdd2", "#b9c6d2"], // from the lowest value up to just below zero
      above: ["#cbc1ae", "#e0b772", "#f0a342", "#ec803c", "#d94b35", "#ae1c4a", "#7a104f", "#38093d"],
      bend: Math.sqrt,
    },
    error: { below: ["#f2f3ec", "#f2f3ec"], above: ["#e4e8d6", "#c3d8b4", "#8fbf9c", "#55a08e", "#2a7d7f", "#175a69", "#0c3547"], bend: (t) => t },
  };

  // ---- colours ----------------------------------------------------------------------------------------------------------

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  function blend(stops, t) {
    const at = Math.min(t * (stops.length - 1), stops.length - 1 - 1e-9);
    const [from, to] = [parts(stops[Math.floor(at)]), parts(stops[Math.min(Math.floor(at) + 1, stops.length - 1)])];
    return from.map((c, k) => Math.round(c + (to[k] - c) * (at % 1)));
  }

  function table(scheme) {
    const rgb = [];
    for (let k = -HALF; k <= HALF; k++) rgb.push(k < 0 ? blend(scheme.below, (k + HALF) / (HALF - 1)) : blend(scheme.above, k / HALF));
    return { css: rgb.map((c) => `rgb(${c.join(" ")})`), pixels: Uint32Array.from(rgb, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0) };
  }

  /* A function from a value to the number of its colour, 0 to 2 HALF. */
  function levelFunction(range, bend) {
    const [low, high] = range;
    const [down, up] = [low < 0 ? -low : 1, high > 0 ? high : 1];
    return (v) => (v < 0 ? HALF - Math.round(HALF * bend(Math.min(-v / down, 1))) : HALF + Math.round(HALF * bend(Math.min(v / up, 1))));
  }

  function quantile(values, share) {
    const step = Math.ceil(values.length / 100000) || 1; // a sample of many values is enough
    let sizes = new Float32Array(Math.ceil(values.length / step));
    let count = 0;
    for (let i = 0; i < values.length; i += step) if (!Number.isNaN(values[i])) sizes[count++] = Math.abs(values[i]);
    sizes = sizes.subarray(0, count).sort();
    return sizes.length ? sizes[Math.min(sizes.length - 1, Math.floor(share * sizes.length))] : 0;
  }

  /* The largest of ..., 1, 2, 5, 10, ... up to `most`. */
  const round125 = (most) => {
    const decade = 10 ** Math.floor(Math.log10(most));
    return +([5, 2, 1].find((f) => f * decade <= most * (1 + 1e-9)) * decade).toPrecision(1);
  };
  /* Rounded up to two digits, for the ends of a legend. */
  const roundUp = (v) => {
    const decade = 10 ** (Math.floor(Math.log10(v)) - 1);
    return +(Math.ceil(v / decade - 1e-6) * decade).toPrecision(2);
  };
  const formatted = (v, digits) => v.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "\u2212");
  const short = (v) => `${+v.toPrecision(3)}`.replace("-", "\u2212");

  // ---- drawing ---------------------------------------------------------------------------------------------------------

  /* Draws the lines of one map, colour by colour: values near zero first, so that large values are on top. */
  function strokes(context, graph, visible, levels, css, place, ink) {
    const { x, y, ends } = graph;
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
        context.lineTo(place.x + place.scale * x[j], place.y - place.scale * y[j]);
      }
      context.strokeStyle = css[level] ?? "#e7e9ec";
      context.lineWidth = ink * (1 + (level > HALF && level <= 2 * HALF ? 1.9 * ((level - HALF) / HALF) ** 1.3 : 0));
      context.stroke();
    }
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
  function legend(ramp, ticks, { maps, range, fixed, scheme, palette }) {
    let [least, most] = [Infinity, -Infinity];
    for (const { means } of maps) for (const v of means) {
      if (v < least) least = v;
      if (v > most) most = v;
    }
    const low = fixed ? range[0] : Math.max(range[0], least < 0 ? -roundUp(-least) : 0), high = range[1];
    const spot = (v) => Math.sign(v) * scheme.bend(Math.abs(v) / (v < 0 ? -range[0] || 1 : high));
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
    const middle = round125(high / (scheme.bend === Math.sqrt ? 4 : 2));
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

  return { NONE, SCHEMES, table, levelFunction, quantile, roundUp, formatted, strokes, raster, legend, ruler };
})();

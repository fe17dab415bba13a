/* Colours of the map: what a value looks like on a light and on a dark page. Functions without state.

   On a light page zero is pale and large values are dark; on a dark page zero is dim and large values are bright. Lightness changes in one
   direction from zero up, and values below zero are blue, so that no reader depends on red and green. */

"use strict";

const HushMapColours = (() => {
  const HALF = 64; // colours on either side of zero
  const NONE = 2 * HALF + 1; // the level of an edge without a value
  const SCHEMES = {
    light: {
      signed: {
        below: ["#3f78a8", "#7ba3c4", "#a9bdd2", "#b9c6d2"], // from the lowest value up to just below zero
        above: ["#cbc1ae", "#e0b772", "#f0a342", "#ec803c", "#d94b35", "#ae1c4a", "#7a104f", "#38093d"],
        bend: Math.sqrt,
      },
      filled: {
        below: ["#3f78a8", "#7ba3c4", "#adc5d8", "#d0dae0"], // areas are seen in paler colours than lines
        above: ["#e6e0d4", "#eacb93", "#f4b45a", "#f2914a", "#de5238", "#b41f4c", "#7d1150", "#3a0a3f"],
        bend: Math.sqrt,
      },
      error: { below: ["#f2f3ec", "#f2f3ec"], above: ["#e4e8d6", "#c3d8b4", "#8fbf9c", "#55a08e", "#2a7d7f", "#175a69", "#0c3547"], bend: (t) => t },
      difference: {
        below: ["#123f7a", "#2467a8", "#5b97c9", "#9dc0dc", "#c9cdd0"], // as strong as those above: zero is in the middle
        above: ["#cfccc7", "#e6b98d", "#d98746", "#b7561c", "#7a2f0a"],
        bend: Math.sqrt,
        diverges: true,
      },
    },
    dark: {
      signed: {
        below: ["#9bd0ff", "#6ba6dd", "#4f7ba6", "#465a70"],
        above: ["#4d4a47", "#6b5743", "#93693c", "#c07a34", "#e3923c", "#f5b45c", "#fdd98f", "#fff6d8"],
        bend: Math.sqrt,
      },
      filled: {
        below: ["#9bd0ff", "#6ba6dd", "#44719b", "#33475a"],
        above: ["#35383c", "#574a3c", "#845f38", "#b57332", "#de8d3a", "#f4b15a", "#fdd88e", "#fff6d8"],
        bend: Math.sqrt,
      },
      error: { below: ["#2c3236", "#2c3236"], above: ["#353d3e", "#3c5552", "#43756b", "#4f9a86", "#6dbf9f", "#a3dfc0", "#e2f9ea"], bend: (t) => t },
      difference: {
        below: ["#b9dcff", "#7fb8f0", "#4c86bf", "#3d5d7c", "#42484e"],
        above: ["#4a4845", "#76553b", "#b87434", "#ee9d55", "#ffd5a6"],
        bend: Math.sqrt,
        diverges: true,
      },
    },
  };
  /* Other colours that are drawn into the canvas. */
  const INKS = {
    light: { paper: "#ffffff", ink: "#1c2530", quiet: "#56616d", line: "#d9dde2", none: "#e7e9ec", between: "#ffffff", water: "#dbe7f0", park: "#e6eedd", district: "#a9b2bb" },
    dark: { paper: "#14181d", ink: "#f0f3f6", quiet: "#a9b4bf", line: "#3a424b", none: "#2b3138", between: "#14181d", water: "#1d2c3a", park: "#1e2b22", district: "#55606b" },
  };

  const parts = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  function blend(stops, t) {
    const at = Math.min(t * (stops.length - 1), stops.length - 1 - 1e-9);
    const [from, to] = [parts(stops[Math.floor(at)]), parts(stops[Math.min(Math.floor(at) + 1, stops.length - 1)])];
    return from.map((c, k) => Math.round(c + (to[k] - c) * (at % 1)));
  }

  /* The colours of a scheme: as CSS, as pixels, and the function that bends values before they become colours. */
  function palette(page, name) {
    const scheme = SCHEMES[page][name];
    const rgb = [];
    for (let k = -HALF; k <= HALF; k++) rgb.push(k < 0 ? blend(scheme.below, (k + HALF) / (HALF - 1)) : blend(scheme.above, k / HALF));
    const pixels = Uint32Array.from(rgb, ([r, g, b]) => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0);
    return { css: rgb.map((c) => `rgb(${c.join(" ")})`), pixels, bend: scheme.bend, diverges: scheme.diverges ?? false, none: INKS[page].none, between: INKS[page].between };
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

  return { HALF, NONE, INKS, palette, levelFunction, quantile };
})();

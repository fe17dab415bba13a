/* hushgraph map: one or several signals on one graph, side by side, on one canvas with one view and one colour scale.

   Classic script, no dependencies, no build step; works served or inlined, under a CSP without unsafe-inline and unsafe-eval.
   It defines one global, HushMap. Load map.css beside it.

   Data (made by hushgraph.app.packing):
     const graph = await HushMap.unpackGraph(json)     // {n, x, y, ends, metres}: Float32Array x, y; Uint32Array ends (2 per edge)
     const values = await HushMap.unpack(json)         // Float32Array, one value per node, in the order of the packed graph
   In Python:
     order = drawing_order(graph)                      # once per graph: neighbours on the map become neighbours in the file
     pack_graph(graph, order)                          # a dict ready for JSON; metres=1.0 if planar coordinates are in metres
     pack_values(values[order], step=0.01)             # a dict ready for JSON; rounded to multiples of step

   A map:
     const map = HushMap.create(element, {graph, maps: [{title: "Noisy", values}, {title: "Denoised", values}]});
       element   an empty block element; the map fills its width, and its height too (give it one in CSS: the map never sets it)
       maps      1 or 2 (more also work), each {title, values, note}; note (a short text behind the title) may be left out
                 values that are NaN mean "no value"
       options   label: "pickups"         what the values are, for legend and hover ("" if not given)
                 name: "Noisy and ..."    accessible name of the canvas
                 digits: 1                decimals of hovered values (chosen from the range if not given)
                 colours: "signed"        "signed" (blue below 0, pale at 0, orange to violet) or "error" (pale to deep green)
                 range: [low, high]       colours' ends; automatic if not given (99.8 % quantile of |edge means| over all maps, rounded up)
                 layout: "auto"           "auto" (what shows the maps larger; stacked under 700 px), "side" or "stacked"
                 fitLabel: "Whole city"   text of the button that shows everything
                 describe: (node) => ""   an extra line in the hover box

   Methods of a map (all cheap to call; drawing happens once in the next animation frame):
     map.setMaps([{title, values, note}, ...])   new values and titles; view, size and a range set by hand stay
     map.setValues([values, values])             new values under the same titles
     map.setGraph(graph, maps)                   another graph; shows the whole of it
     map.setRange(low, high)  map.setRange(null) colours' ends by hand, or automatic again;  map.range() -> [low, high]
     map.setLayout("auto" | "side" | "stacked")
     map.setView({x, y, scale})  map.view()      centre in graph units, CSS pixels per unit; shared by all maps
     map.fit()                                   the whole graph
     map.draw()                                  draws at once (before a screenshot, say); returns milliseconds
     map.destroy()                               takes listeners and elements away
   map.canvas is the canvas; its dataset.drawn counts finished drawings, dataset.view is "x y scale" of the last one.

   Keys on the focused canvas: arrows move, + and - zoom, 0 or Home show the whole graph. Escape hides the hover box. */

"use strict";

const HushMap = (() => {
  const STROKES = 60000; // edges in view; above this a pixel raster is faster, and a stroke would be thinner than a pixel
  const HALF = 64; // colours on either side of zero
  const NARROW = 700; // CSS pixels
  const CHUNK = 512; // consecutive edges that share a bounding box
  const SCHEMES = {
    signed: {
      below: ["#3f78a8", "#7ba3c4", "#a9bdd2", "#b9c6d2"], // from the lowest value up to just below zero
      above: ["#cbc1ae", "#e0b772", "#f0a342", "#ec803c", "#d94b35", "#ae1c4a", "#7a104f", "#38093d"],
      bend: Math.sqrt,
    },
    error: { below: ["#f2f3ec", "#f2f3ec"], above: ["#e4e8d6", "#c3d8b4", "#8fbf9c", "#55a08e", "#2a7d7f", "#175a69", "#0c3547"], bend: (t) => t },
  };

  // ---- packed numbers: fixed-point, differences, zigzag, byte planes, zlib, base64 --------------------------------------

  async function inflate(text) {
    const raw = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  async function unpackInto(packed, Kind) {
    const planes = await inflate(packed.data);
    const { count, bytes, step, start, difference } = packed;
    const values = new Kind(count);
    for (let i = 0, sum = 0; i < count; i++) {
      let zigzag = 0;
      for (let b = 0, at = i; b < bytes; b++, at += count) zigzag |= planes[at] << (8 * b);
      const whole = (zigzag >>> 1) ^ -(zigzag & 1);
      sum = difference ? sum + whole : whole;
      values[i] = start + step * sum;
    }
    return values;
  }

  async function unpack(packed) {
    const values = await unpackInto(packed, Float32Array);
    if (packed.missing) for (const i of await unpackInto(packed.missing, Uint32Array)) values[i] = NaN;
    return values;
  }

  async function unpackGraph(packed) {
    const [x, y, degrees, offsets] = await Promise.all([
      unpackInto(packed.x, Float32Array),
      unpackInto(packed.y, Float32Array),
      unpackInto(packed.degrees, Uint32Array),
      unpackInto(packed.offsets, Uint32Array),
    ]);
    const ends = new Uint32Array(2 * offsets.length);
    for (let i = 0, e = 0; i < degrees.length; i++) {
      for (const last = e + degrees[i]; e < last; e++) {
        ends[2 * e] = i;
        ends[2 * e + 1] = i + offsets[e];
      }
    }
    return { n: x.length, x, y, ends, metres: packed.metres };
  }

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

  /* Number of a value's colour, 0 to 2 HALF. */
  function leveller(range, bend) {
    const [low, high] = range;
    const [down, up] = [low < 0 ? -low : 1, high > 0 ? high : 1];
    return (v) => (v < 0 ? HALF - Math.round(HALF * bend(Math.min(-v / down, 1))) : HALF + Math.round(HALF * bend(Math.min(v / up, 1))));
  }

  function quantile(values, share) {
    const hop = Math.ceil(values.length / 100000) || 1; // of many values a sample will do
    let kept = new Float32Array(Math.ceil(values.length / hop));
    let count = 0;
    for (let i = 0; i < values.length; i += hop) if (!Number.isNaN(values[i])) kept[count++] = Math.abs(values[i]);
    kept = kept.subarray(0, count).sort();
    return kept.length ? kept[Math.min(kept.length - 1, Math.floor(share * kept.length))] : 0;
  }

  const round125 = (most) => {
    const decade = 10 ** Math.floor(Math.log10(most));
    return [5, 2, 1].find((f) => f * decade <= most) * decade;
  };
  /* To the next number of two digits, for the ends of a legend. */
  const roundUp = (v) => {
    const decade = 10 ** (Math.floor(Math.log10(v)) - 1);
    return +(Math.ceil(v / decade - 1e-6) * decade).toPrecision(2);
  };
  const written = (v, digits) => v.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }).replace("-", "\u2212");
  const short = (v) => `${+v.toPrecision(3)}`.replace("-", "\u2212");

  // ---- what is worked out once for a graph -----------------------------------------------------------------------------

  function prepare(graph) {
    const { n, x, y } = graph;
    const alone = new Uint8Array(n).fill(1);
    for (const i of graph.ends) alone[i] = 0;
    const dots = [];
    for (let i = 0; i < n; i++) if (alone[i]) dots.push(i, i); // a node without edges is a line without length: a dot
    const ends = new Uint32Array(graph.ends.length + dots.length);
    ends.set(graph.ends);
    ends.set(dots, graph.ends.length);
    const box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      if (x[i] < box[0]) box[0] = x[i];
      if (y[i] < box[1]) box[1] = y[i];
      if (x[i] > box[2]) box[2] = x[i];
      if (y[i] > box[3]) box[3] = y[i];
    }
    if (!n) box.splice(0, 4, 0, 0, 1, 1);
    const m = ends.length / 2;
    const boxes = new Float32Array(4 * Math.ceil(m / CHUNK));
    const lengths = [];
    for (let c = 0; c < boxes.length / 4; c++) {
      let [left, low, right, high] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let k = 2 * c * CHUNK; k < Math.min(2 * m, 2 * (c + 1) * CHUNK); k++) {
        const i = ends[k];
        left = Math.min(left, x[i]);
        right = Math.max(right, x[i]);
        low = Math.min(low, y[i]);
        high = Math.max(high, y[i]);
      }
      boxes.set([left, low, right, high], 4 * c);
    }
    for (let e = 0, hop = Math.ceil(m / 4000) || 1; e < m; e += hop) lengths.push(Math.hypot(x[ends[2 * e]] - x[ends[2 * e + 1]], y[ends[2 * e]] - y[ends[2 * e + 1]]));
    const length = lengths.sort((a, b) => a - b)[lengths.length >> 1] || Math.max(box[2] - box[0], box[3] - box[1]) / Math.sqrt(n + 1) || 1;
    return { ...graph, ends, m, box, boxes, length, grid: gridOf(n, x, y, box) };
  }

  /* Nodes by square cells, for the nearest one to a pointer. */
  function gridOf(n, x, y, box) {
    const [wide, high] = [box[2] - box[0] || 1, box[3] - box[1] || 1];
    const size = Math.max(Math.sqrt((wide * high * 4) / Math.max(n, 1)), wide / 2000, high / 2000);
    const [columns, rows] = [Math.floor(wide / size) + 1, Math.floor(high / size) + 1];
    const cell = (px, py) => Math.floor((py - box[1]) / size) * columns + Math.floor((px - box[0]) / size);
    const first = new Uint32Array(columns * rows + 1);
    for (let i = 0; i < n; i++) first[cell(x[i], y[i]) + 1]++;
    for (let c = 0; c < columns * rows; c++) first[c + 1] += first[c];
    const [nodes, next] = [new Uint32Array(n), first.slice()];
    for (let i = 0; i < n; i++) nodes[next[cell(x[i], y[i])]++] = i;
    return { size, columns, rows, first, nodes };
  }

  function nearest(graph, px, py, reach) {
    const { size, columns, rows, first, nodes } = graph.grid;
    const column = (v) => Math.floor((v - graph.box[0]) / size);
    const row = (v) => Math.floor((v - graph.box[1]) / size);
    let [best, least] = [-1, reach * reach];
    for (let r = Math.max(0, row(py - reach)); r <= Math.min(rows - 1, row(py + reach)); r++) {
      for (let c = Math.max(0, column(px - reach)); c <= Math.min(columns - 1, column(px + reach)); c++) {
        for (let k = first[r * columns + c]; k < first[r * columns + c + 1]; k++) {
          const far = (graph.x[nodes[k]] - px) ** 2 + (graph.y[nodes[k]] - py) ** 2;
          if (far <= least) [best, least] = [nodes[k], far];
        }
      }
    }
    return best;
  }

  /* Mean of the two ends; of one end where the other has no value. */
  function edgeValues(graph, values) {
    const means = new Float32Array(graph.m);
    for (let e = 0; e < graph.m; e++) {
      const a = values[graph.ends[2 * e]], b = values[graph.ends[2 * e + 1]];
      means[e] = Number.isNaN(a) ? b : Number.isNaN(b) ? a : (a + b) / 2;
    }
    return means;
  }

  function edgesIn(graph, left, low, right, high) {
    const { x, y, ends, boxes, m } = graph;
    const seen = new Uint32Array(m);
    let count = 0;
    for (let c = 0; c < boxes.length / 4; c++) {
      if (boxes[4 * c] > right || boxes[4 * c + 2] < left || boxes[4 * c + 1] > high || boxes[4 * c + 3] < low) continue;
      for (let e = c * CHUNK; e < Math.min(m, (c + 1) * CHUNK); e++) {
        const i = ends[2 * e], j = ends[2 * e + 1];
        if ((x[i] < left && x[j] < left) || (x[i] > right && x[j] > right)) continue;
        if ((y[i] < low && y[j] < low) || (y[i] > high && y[j] > high)) continue;
        seen[count++] = e;
      }
    }
    return seen.subarray(0, count);
  }

  // ---- drawing ---------------------------------------------------------------------------------------------------------

  /* Lines of one map, colour by colour: those near zero first, so that large values lie on top. */
  function strokes(context, graph, seen, levels, css, place, ink) {
    const { x, y, ends } = graph;
    const [first, sorted] = [new Uint32Array(2 * HALF + 3), new Uint32Array(seen.length)];
    for (const e of seen) first[levels[e] + 1]++;
    for (let k = 0; k < first.length - 1; k++) first[k + 1] += first[k];
    const next = first.slice();
    for (const e of seen) sorted[next[levels[e]]++] = e;
    const order = [2 * HALF + 1, HALF]; // no value, zero, then outwards
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

  /* The mean of all lines that cross a pixel, for all maps at once; the largest of them would exaggerate the noise. */
  function raster(graph, seen, means, place, wide, high) {
    const { x, y, ends } = graph;
    const sums = means.map(() => new Float32Array(wide * high));
    const counts = means.map(() => new Uint16Array(wide * high));
    for (const e of seen) {
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

  function make(tag, name, parent, text) {
    const element = document.createElement(tag);
    element.className = `hush-map-${name}`;
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  }

  function create(element, options) {
    const { label = "", name = "Map", digits, colours = "signed", fitLabel = "Whole city", describe } = options;
    const scheme = SCHEMES[colours];
    const palette = table(scheme);
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    const listening = new AbortController();
    const on = (target, type, act, more) => target.addEventListener(type, act, { signal: listening.signal, ...more });

    element.classList.add("hush-map");
    const stage = make("div", "stage", element);
    const canvas = make("canvas", "canvas", stage);
    const context = canvas.getContext("2d");
    const hover = make("div", "hover", stage);
    const bar = make("div", "bar", element);
    const legend = make("div", "legend", bar);
    const ramp = make("canvas", "ramp", legend);
    const ticks = make("div", "ticks", legend);
    const unit = make("span", "unit", bar, label);
    const ruler = make("span", "ruler", bar);
    const button = make("button", "fit", bar, fitLabel);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "map");
    canvas.setAttribute("aria-label", `${name}. Arrow keys move, plus and minus zoom, 0 shows everything.`);
    hover.setAttribute("role", "status");
    unit.hidden = !label;
    button.type = "button";
    hover.hidden = true;

    let graph, maps, view, shown, panels, stacked;
    let [fixed, layout, frame, drawn, moves, scrolled] = [options.range ?? null, options.layout ?? "auto", 0, 0, 0, -Infinity];
    const titles = [], rings = [];

    // ---- values and their colours

    function setMaps(given) {
      maps = given.map((one) => ({ ...one, means: edgeValues(graph, one.values) }));
      while (titles.length < maps.length) {
        titles.push(make("div", "title", stage));
        rings.push(make("div", "ring", stage));
      }
      titles.forEach((title, p) => {
        title.hidden = p >= maps.length;
        title.replaceChildren();
        if (title.hidden) return;
        make("strong", "name", title, maps[p].title);
        if (maps[p].note) make("span", "note", title, maps[p].note);
      });
      recolour();
      hide();
    }

    function recolour() {
      const top = roundUp(Math.max(...maps.map((one) => quantile(one.means, 0.998))) || 1);
      shown = fixed ?? (colours === "signed" ? [-top, top] : [0, top]);
      const level = leveller(shown, scheme.bend);
      for (const one of maps) {
        one.levels = new Uint8Array(graph.m);
        for (let e = 0; e < graph.m; e++) one.levels[e] = Number.isNaN(one.means[e]) ? 2 * HALF + 1 : level(one.means[e]);
      }
      writeLegend();
      later();
    }

    function writeLegend() {
      let [least, most] = [Infinity, -Infinity];
      for (const one of maps) for (const v of one.means) {
        if (v < least) least = v;
        if (v > most) most = v;
      }
      const low = fixed ? shown[0] : Math.max(shown[0], Math.min(least, 0)), high = shown[1];
      const spot = (v) => Math.sign(v) * scheme.bend(Math.abs(v) / (v < 0 ? -shown[0] || 1 : high));
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
        const tick = make("span", "tick", ticks, text);
        tick.style.left = `${100 * share(v)}%`;
        tick.style.transform = share(v) > 0.9 ? "translateX(-100%)" : share(v) < 0.1 ? "none" : "translateX(-50%)";
      }
    }

    // ---- panels and the view

    function arrange() {
      const [wide, high] = [stage.clientWidth, stage.clientHeight];
      const [k, top] = [maps.length, 44];
      const fitted = (w, h) => Math.min((w - 24) / (graph.box[2] - graph.box[0] || 1), (h - top - 16) / (graph.box[3] - graph.box[1] || 1));
      stacked = layout === "stacked" || (layout === "auto" && k > 1 && (wide < NARROW || fitted(wide, high / k) > 1.05 * fitted(wide / k, high)));
      const [w, h] = stacked ? [wide, high / k] : [wide / k, high];
      panels = maps.map((_, p) => ({ left: stacked ? 0 : p * w, top: stacked ? p * h : 0, w, h }));
      panels.scale = Math.max(fitted(w, h), 1e-9);
      panels.forEach((panel, p) => Object.assign(titles[p].style, { left: `${panel.left + (panel.left > 0)}px`, top: `${panel.top + (panel.top > 0)}px`, maxWidth: `${w - 1}px` }));
      stage.classList.toggle("hush-map-stacked", stacked);
    }

    /* Middle of the map in its panel: a little low, since the title is above. */
    const centre = (panel) => [panel.left + panel.w / 2, panel.top + panel.h / 2 + 14];
    const whole = () => ({ x: (graph.box[0] + graph.box[2]) / 2, y: (graph.box[1] + graph.box[3]) / 2, scale: null });
    const scaleOf = (some) => some.scale ?? panels.scale; // null follows the size of the element

    function bounded({ x, y, scale }) {
      const most = Math.max(260 / graph.length, 8 * panels.scale);
      if (scale === null || scale <= panels.scale * 1.001) return whole();
      return { x: Math.min(Math.max(x, graph.box[0]), graph.box[2]), y: Math.min(Math.max(y, graph.box[1]), graph.box[3]), scale: Math.min(scale, most) };
    }

    function setView(wanted) {
      view = bounded(wanted);
      moves++;
      canvas.style.touchAction = view.scale === null ? "pan-y" : "none"; // one finger scrolls the page until the map is zoomed
      later();
    }

    /* The point under (px, py) stays there. */
    function zoomed(px, py, factor) {
      const [cx, cy] = centre(panelAt(px, py));
      const scale = scaleOf(view) * factor;
      const next = Math.min(Math.max(scale, panels.scale), Math.max(260 / graph.length, 8 * panels.scale));
      const [wx, wy] = [view.x + (px - cx) / scaleOf(view), view.y - (py - cy) / scaleOf(view)];
      return { x: wx - (px - cx) / next, y: wy + (py - cy) / next, scale: next };
    }

    function glide(wanted) {
      const [from, to, began] = [{ ...view, scale: scaleOf(view) }, bounded(wanted), performance.now()];
      if (still.matches || graph.m > STROKES) return setView(to);
      const mine = ++moves; // another move ends this one
      const step = (now) => {
        if (mine !== moves) return undefined;
        const t = Math.min(Math.max((now - began) / 180, 0), 1);
        const ease = t * (2 - t);
        const scale = from.scale * (scaleOf(to) / from.scale) ** ease;
        if (t < 1) view = { x: from.x + (to.x - from.x) * ease, y: from.y + (to.y - from.y) * ease, scale };
        else return setView(to);
        draw();
        return requestAnimationFrame(step);
      };
      return requestAnimationFrame(step);
    }

    const panelAt = (px, py) => panels.find((q) => px < q.left + q.w && py < q.top + q.h && px >= q.left && py >= q.top) ?? panels[0];

    // ---- one drawing

    function later() {
      if (!frame) frame = requestAnimationFrame(draw);
    }

    function draw() {
      cancelAnimationFrame(frame);
      frame = 0;
      const began = performance.now();
      const ratio = devicePixelRatio || 1;
      arrange();
      const [wide, high] = [Math.round(stage.clientWidth * ratio), Math.round(stage.clientHeight * ratio)];
      if (!wide || !high) return 0;
      if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
      const scale = scaleOf(view);
      const { w, h } = panels[0];
      const seen = edgesIn(graph, view.x - (w / 2 + 8) / scale, view.y - (h / 2 + 8) / scale, view.x + (w / 2 + 8) / scale, view.y + (h / 2 + 24) / scale);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, wide, high);
      if (seen.length > STROKES) drawRaster(seen, scale, ratio);
      else drawStrokes(seen, scale, ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = "#d9dde2";
      for (const panel of panels.slice(1)) context.fillRect(panel.left, panel.top, stacked ? panel.w : 1, stacked ? 1 : panel.h);
      writeRuler(scale);
      button.disabled = view.scale === null;
      canvas.dataset.view = `${view.x} ${view.y} ${scale}`;
      canvas.dataset.drawn = ++drawn;
      return performance.now() - began;
    }

    function drawStrokes(seen, scale, ratio) {
      const ink = Math.min(Math.max(0.085 * graph.length * scale, 0.75), 3.2);
      panels.forEach((panel, p) => {
        const [cx, cy] = centre(panel);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.save();
        context.beginPath();
        context.rect(panel.left, panel.top, panel.w, panel.h);
        context.clip();
        strokes(context, graph, seen, maps[p].levels, palette.css, { x: cx - view.x * scale, y: cy + view.y * scale, scale }, ink);
        context.restore();
      });
    }

    function drawRaster(seen, scale, ratio) {
      const [wide, high] = [Math.round(panels[0].w * ratio), Math.round(panels[0].h * ratio)];
      const [cx, cy] = centre({ left: 0, top: 0, w: panels[0].w, h: panels[0].h });
      const place = { x: ratio * (cx - view.x * scale), y: ratio * (cy + view.y * scale), scale: ratio * scale };
      const level = leveller(shown, scheme.bend);
      raster(graph, seen, maps.map((one) => one.means), place, wide, high).forEach((means, p) => {
        const image = context.createImageData(wide, high);
        const pixels = new Uint32Array(image.data.buffer);
        for (let at = 0; at < means.length; at++) if (means[at] === means[at]) pixels[at] = palette.pixels[level(means[at])];
        context.putImageData(image, Math.round(panels[p].left * ratio), Math.round(panels[p].top * ratio));
      });
    }

    function writeRuler(scale) {
      ruler.hidden = !graph.metres;
      if (ruler.hidden) return;
      const metres = round125((90 * graph.metres) / scale);
      ruler.style.width = `${(metres / graph.metres) * scale}px`;
      ruler.textContent = metres >= 1000 ? `${metres / 1000} km` : `${+metres.toPrecision(1)} m`;
    }

    // ---- values under the pointer

    function hide() {
      hover.hidden = true;
      rings.forEach((ring) => (ring.hidden = true));
    }

    function show(px, py, reach) {
      const panel = panelAt(px, py);
      const scale = scaleOf(view);
      const [cx, cy] = centre(panel);
      const node = nearest(graph, view.x + (px - cx) / scale, view.y - (py - cy) / scale, reach / scale);
      if (node < 0) return hide();
      const places = digits ?? Math.max(0, Math.min(6, 1 - Math.floor(Math.log10((shown[1] - shown[0]) / 20))));
      hover.replaceChildren();
      maps.forEach((one, p) => {
        const line = make("div", "line", hover);
        make("span", "key", line, one.title);
        make("strong", "value", line, Number.isNaN(one.values[node]) ? "no value" : written(one.values[node], places));
        const [qx, qy] = centre(panels[p]);
        const [x, y] = [qx + (graph.x[node] - view.x) * scale, qy - (graph.y[node] - view.y) * scale];
        rings[p].hidden = panelAt(x, y) !== panels[p];
        Object.assign(rings[p].style, { left: `${x}px`, top: `${y}px` });
      });
      const more = describe?.(node);
      if (more) make("div", "more", hover, more);
      hover.hidden = false;
      const [x, y] = [cx + (graph.x[node] - view.x) * scale, cy - (graph.y[node] - view.y) * scale];
      const { offsetWidth: wide, offsetHeight: high } = hover;
      hover.style.left = `${Math.max(4, Math.min(x + 14 + wide > stage.clientWidth ? x - 14 - wide : x + 14, stage.clientWidth - wide - 4))}px`;
      hover.style.top = `${Math.max(4, Math.min(y - high / 2, stage.clientHeight - high - 4))}px`;
      return node;
    }

    // ---- hands

    const pointers = new Map();
    const spot = (event) => {
      const box = stage.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };

    on(canvas, "pointerdown", (event) => {
      if (event.button) return;
      pointers.set(event.pointerId, spot(event));
      if (event.pointerType === "touch" && view.scale === null && pointers.size === 1) return; // the page's to scroll
      canvas.setPointerCapture(event.pointerId);
    });
    on(canvas, "pointermove", (event) => {
      const [px, py] = spot(event);
      const was = pointers.get(event.pointerId);
      if (!was) return void (event.pointerType !== "touch" && show(px, py, 16));
      if (pointers.size === 1 && event.pointerType === "touch" && view.scale === null) return;
      hide();
      canvas.classList.add("hush-map-dragged");
      const before = [...pointers.values()];
      pointers.set(event.pointerId, [px, py]);
      if (pointers.size === 1) return setView({ x: view.x - (px - was[0]) / scaleOf(view), y: view.y + (py - was[1]) / scaleOf(view), scale: view.scale });
      const after = [...pointers.values()];
      const span = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
      const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
      const [from, to] = [middle(before), middle(after)];
      const next = zoomed(...from, span(after) / span(before));
      setView({ ...next, x: next.x - (to[0] - from[0]) / next.scale, y: next.y + (to[1] - from[1]) / next.scale });
    });
    for (const type of ["pointerup", "pointercancel"]) on(canvas, type, (event) => {
      const tapped = event.pointerType === "touch" && type === "pointerup" && !canvas.classList.contains("hush-map-dragged");
      pointers.delete(event.pointerId);
      if (!pointers.size) canvas.classList.remove("hush-map-dragged");
      if (tapped) show(...spot(event), 28);
    });
    on(canvas, "pointerleave", (event) => event.pointerType === "mouse" && hide());
    on(canvas, "dblclick", (event) => glide(zoomed(...spot(event), event.shiftKey ? 0.5 : 2)));
    on(window, "scroll", () => (scrolled = performance.now()), { passive: true, capture: true });
    on(canvas, "wheel", (event) => {
      const out = event.deltaY > 0 && view.scale === null;
      if (!event.ctrlKey && (out || performance.now() - scrolled < 250)) return; // a page that is being scrolled goes on
      event.preventDefault();
      hide();
      const lines = event.deltaMode === 1 ? 30 : 1;
      setView(zoomed(...spot(event), Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.0022))));
    }, { passive: false });
    on(canvas, "keydown", (event) => {
      const go = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, _: 1 / 1.5 }[event.key];
      const [cx, cy] = centre(panels[0]);
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (go) setView({ x: view.x + (go[0] * panels[0].w) / 8 / scaleOf(view), y: view.y + (go[1] * panels[0].h) / 8 / scaleOf(view), scale: view.scale });
      else if (zoom) setView(zoomed(cx, cy, zoom));
      else if (event.key === "0" || event.key === "Home") fit();
      else if (event.key === "Escape") return hide();
      else return;
      event.preventDefault();
      show(cx, cy, 60); // what a pointer would show, for those without one
    });
    on(button, "click", () => fit());
    on(window, "resize", () => later());
    on(window, "beforeprint", () => draw());
    const watching = new ResizeObserver(() => {
      hide();
      draw();
    });

    function fit() {
      hide();
      glide({ ...whole(), scale: null });
    }

    function setGraph(next, given) {
      graph = prepare(next);
      view = whole();
      canvas.style.touchAction = "pan-y";
      setMaps(given);
    }

    setGraph(options.graph, options.maps);
    arrange();
    watching.observe(stage);
    return {
      canvas, setMaps, setGraph, fit, draw,
      setValues: (values) => setMaps(maps.map((one, p) => ({ title: one.title, note: one.note, values: values[p] }))),
      setRange: (low, high) => {
        fixed = low === null ? null : [low, high];
        recolour();
      },
      range: () => [...shown],
      setLayout: (wanted) => {
        layout = wanted;
        later();
      },
      setView: (wanted) => setView(wanted),
      view: () => ({ ...view, scale: scaleOf(view) }),
      destroy: () => {
        listening.abort();
        watching.disconnect();
        cancelAnimationFrame(frame);
        for (const child of [stage, bar]) child.remove();
        element.classList.remove("hush-map");
      },
    };
  }

  return { create, unpack, unpackGraph };
})();

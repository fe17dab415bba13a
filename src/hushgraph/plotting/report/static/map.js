/* hushgraph map: one or several signals on one graph, side by side, on one canvas with one view and one colour scale.

   Classic scripts, no dependencies, no build step; they work served or inlined, under a CSP without unsafe-inline and unsafe-eval.
   Load map_data.js, map_paint.js, map_input.js and map.js, in this order, and map.css. Pages use one global, HushMap.

   Data (packed by hushgraph.plotting):
     const graph = await HushMap.unpackGraph(json)     // {n, x, y, ends, labels, ...}: Float32Array x, y; Uint32Array ends (2 per edge)
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
     map.destroy()                               removes listeners and elements
   map.canvas is the canvas; its dataset.drawn counts finished drawings, dataset.view is "x y scale" of the last one.

   Keys on the focused canvas: arrows move, + and - zoom, 0 or Home show the whole graph. Escape hides the hover box. */

"use strict";

const HushMap = (() => {
  const STROKES = 60000; // edges in view; above this a pixel raster is faster, and a stroke would be thinner than a pixel
  const NARROW = 700; // CSS pixels
  const { unpack, unpackGraph, prepare, nearest, edgeValues, edgesIn } = HushMapData;
  const { NONE, SCHEMES, table, levelFunction, quantile, roundUp, formatted, strokes, raster, legend, ruler } = HushMapPaint;

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
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    const listeners = new AbortController();
    const on = (target, type, act, more) => target.addEventListener(type, act, { signal: listeners.signal, ...more });

    element.classList.add("hush-map");
    const stage = make("div", "stage", element);
    const canvas = make("canvas", "canvas", stage);
    const context = canvas.getContext("2d");
    const hover = make("div", "hover", stage);
    const bar = make("div", "bar", element);
    const key = make("div", "legend", bar);
    const ramp = make("canvas", "ramp", key);
    const ticks = make("div", "ticks", key);
    const unit = make("span", "unit", bar, label);
    const rule = make("span", "ruler", bar);
    rule.append(make("i", "length"), make("span", "metres"));
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
    let [fixed, layout, frame, drawn, moves] = [options.range ?? null, options.layout ?? "auto", 0, 0, 0];
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
      const level = levelFunction(shown, scheme.bend);
      for (const one of maps) {
        one.levels = new Uint8Array(graph.m);
        for (let e = 0; e < graph.m; e++) one.levels[e] = Number.isNaN(one.means[e]) ? NONE : level(one.means[e]);
      }
      legend(ramp, ticks, { maps, range: shown, fixed: fixed !== null, scheme, palette });
      drawLater();
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

    /* Centre of the map in its panel: a little low, since the title is above. */
    const centre = (panel) => [panel.left + panel.w / 2, panel.top + panel.h / 2 + 14];
    const whole = () => ({ x: (graph.box[0] + graph.box[2]) / 2, y: (graph.box[1] + graph.box[3]) / 2, scale: null });
    const scaleOf = (some) => some.scale ?? panels.scale; // null: the scale follows the size of the element

    function bounded({ x, y, scale }) {
      const most = Math.max(260 / graph.length, 8 * panels.scale);
      if (scale === null || scale <= panels.scale * 1.001) return whole();
      return { x: Math.min(Math.max(x, graph.box[0]), graph.box[2]), y: Math.min(Math.max(y, graph.box[1]), graph.box[3]), scale: Math.min(scale, most) };
    }

    function setView(next) {
      view = bounded(next);
      moves++;
      canvas.style.touchAction = view.scale === null ? "pan-y" : "none"; // one finger scrolls the page until the map is zoomed
      drawLater();
    }

    /* The view after zooming; the point under (px, py) does not move. */
    function zoomed(px, py, factor) {
      const [cx, cy] = centre(panelAt(px, py));
      const scale = scaleOf(view) * factor;
      const next = Math.min(Math.max(scale, panels.scale), Math.max(260 / graph.length, 8 * panels.scale));
      const [wx, wy] = [view.x + (px - cx) / scaleOf(view), view.y - (py - cy) / scaleOf(view)];
      return { x: wx - (px - cx) / next, y: wy + (py - cy) / next, scale: next };
    }

    function glide(next) {
      const [from, to, began] = [{ ...view, scale: scaleOf(view) }, bounded(next), performance.now()];
      if (reducedMotion.matches || graph.m > STROKES) return setView(to);
      const number = ++moves; // another move ends this one
      const step = (now) => {
        if (number !== moves) return undefined;
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

    function drawLater() {
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
      const visible = edgesIn(graph, view.x - (w / 2 + 8) / scale, view.y - (h / 2 + 8) / scale, view.x + (w / 2 + 8) / scale, view.y + (h / 2 + 24) / scale);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, wide, high);
      if (visible.length > STROKES) drawRaster(visible, scale, ratio);
      else drawStrokes(visible, scale, ratio);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = "#d9dde2";
      for (const panel of panels.slice(1)) context.fillRect(panel.left, panel.top, stacked ? panel.w : 1, stacked ? 1 : panel.h);
      ruler(rule, graph, view, scale);
      button.disabled = view.scale === null;
      canvas.dataset.view = `${view.x} ${view.y} ${scale}`;
      canvas.dataset.drawn = ++drawn;
      return performance.now() - began;
    }

    function drawStrokes(visible, scale, ratio) {
      const ink = Math.min(Math.max(0.085 * graph.length * scale, 0.75), 3.2);
      panels.forEach((panel, p) => {
        const [cx, cy] = centre(panel);
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.save();
        context.beginPath();
        context.rect(panel.left, panel.top, panel.w, panel.h);
        context.clip();
        strokes(context, graph, visible, maps[p].levels, palette.css, { x: cx - view.x * scale, y: cy + view.y * scale, scale }, ink);
        context.restore();
      });
    }

    function drawRaster(visible, scale, ratio) {
      const [wide, high] = [Math.round(panels[0].w * ratio), Math.round(panels[0].h * ratio)];
      const [cx, cy] = centre({ left: 0, top: 0, w: panels[0].w, h: panels[0].h });
      const place = { x: ratio * (cx - view.x * scale), y: ratio * (cy + view.y * scale), scale: ratio * scale };
      const level = levelFunction(shown, scheme.bend);
      raster(graph, visible, maps.map((one) => one.means), place, wide, high).forEach((means, p) => {
        const image = context.createImageData(wide, high);
        const pixels = new Uint32Array(image.data.buffer);
        for (let at = 0; at < means.length; at++) if (means[at] === means[at]) pixels[at] = palette.pixels[level(means[at])];
        context.putImageData(image, Math.round(panels[p].left * ratio), Math.round(panels[p].top * ratio));
      });
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
      if (graph.labels) make("div", "node", hover, graph.labels[node]);
      maps.forEach((one, p) => {
        const line = make("div", "line", hover);
        make("span", "key", line, one.title);
        make("strong", "value", line, Number.isNaN(one.values[node]) ? "no value" : formatted(one.values[node], places));
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

    // ---- input and the window

    HushMapInput.listen(canvas, on, {
      show, hide, zoomed, setView, glide, fit,
      isWhole: () => view.scale === null,
      moveBy: (px, py) => setView({ x: view.x - px / scaleOf(view), y: view.y + py / scaleOf(view), scale: view.scale }),
      middle: () => {
        const [x, y] = centre(panels[0]);
        return { x, y, w: panels[0].w, h: panels[0].h };
      },
    });
    on(button, "click", () => fit());
    on(window, "resize", () => drawLater());
    on(window, "beforeprint", () => draw());
    const resizes = new ResizeObserver(() => {
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
    resizes.observe(stage);
    return {
      canvas, setMaps, setGraph, fit, draw,
      setValues: (values) => setMaps(maps.map((one, p) => ({ title: one.title, note: one.note, values: values[p] }))),
      setRange: (low, high) => {
        fixed = low === null ? null : [low, high];
        recolour();
      },
      range: () => [...shown],
      setLayout: (next) => {
        layout = next;
        drawLater();
      },
      setView: (next) => setView(next),
      view: () => ({ ...view, scale: scaleOf(view) }),
      destroy: () => {
        listeners.abort();
        resizes.disconnect();
        cancelAnimationFrame(frame);
        for (const child of [stage, bar]) child.remove();
        element.classList.remove("hush-map");
      },
    };
  }

  return { create, unpack, unpackGraph };
})();

/* hushgraph map: layers of values on one graph, alone, side by side or with a divider between two, on one canvas with one view.

   Classic scripts, no dependencies, no build step; they work served or inlined, under a CSP without unsafe-inline and unsafe-eval.
   Load the scripts in the order of MAP_SCRIPTS (report/packing.py) and map.css. Pages use HushMap, and HushMapTime for several windows.

   Data (packed by hushgraph.plotting):
     const graph = await HushMap.unpackGraph(json)     // {n, x, y, ends, labels, names, ...}: Float32Array x, y; Uint32Array ends (2 per edge)
                                                       // with outlines {x, y, starts, nodes}, nodes are zones: they are filled, not their edges
     const values = await HushMap.unpack(json)         // Float32Array, one value per node, in the order of the packed graph
   In Python:
     order = drawing_order(graph)                      # once per graph: neighbours on the map become neighbours in the file
     pack_graph(graph, order)                          # a dict ready for JSON; metres=1.0 if planar coordinates are in metres
     pack_values(values[order], step=0.01)             # a dict ready for JSON; rounded to multiples of step

   A map:
     const map = HushMap.create(element, {graph, layers: [{name: "noisy", title: "Noisy", values}, {name: "denoised", ...}]});
       element   an empty block element; the map fills its width, and its height too (give it one in CSS: the map never sets it)
       layers    each {name, title, values, note, lower, upper, colours, span, than}; note (a short text behind the title) may be left out
                 values that are NaN mean "no value"; lower and upper (the interval of each value, for hover) may be left out or NaN
                 colours: "signed" (blue below 0; the default), "error" (from 0 up, green) or "difference" (0 in the middle)
                 span: what map.spanOf says of several windows, which then have the same colours and legend
                 than: "at 07:00" for differences, whose hover text is "12 more than at 07:00"
                 the first two are a pair: shown side by side, or on one another with a divider; all others are shown alone
                 values may be null while they are not known
       options   show: "side"             "side", "swipe" or the name of a layer
                 label: "pickups"         what the values are, for the legend ("" if not given)
                 unit: "pickups"          what follows a number in the hover box ("" if not given)
                 title: "Pickups in ..."  title of saved pictures;  credit: "© ..." attribution, on the map and in pictures
                 name: "Noisy and ..."    accessible name of the canvas
                 digits: 1                decimals of hovered values (chosen from the range if not given)
                 range: [low, high]       colours' ends; automatic if not given (99.8 % quantile of |edge means| over the pair, rounded up)
                 layout: "auto"           "auto" (what shows the pair larger; stacked under 700 px), "side" or "stacked"
                 fitLabel: "Whole map"    text of the button that shows everything
                 onColours: () => {}      called when the colours have changed
                 onRegion: (ring) => {}   lets users outline a region, Shift and drag: its corners [[x, y], ...] in graph units

   Methods of a map (all cheap to call; drawing happens once in the next animation frame):
     map.setLayers([{name, title, values, note}, ...])   new values: view, choice, divider, hover box and a range set by hand stay
     map.setTexts({label, title})                other texts beside the legend and on saved pictures
     map.shownLayer()                            the layer that is shown, of two the second; map.page() is "light" or "dark"
     map.paint(canvas, layer)                    draws all of such a layer into another canvas, with the colours of the map
     map.shape                                   height over width of the graph
     map.spanOf(values)                          {least, most, size}: their ends, and the size that ends automatic colours
     map.show("swipe")                           another way to show the layers
     map.setGraph(graph, layers)                 another graph; shows the whole of it
     map.setRange(low, high)  map.setRange(null) colours' ends by hand, or automatic again;  map.range() -> [low, high]
     map.setLayout("auto" | "side" | "stacked")
     map.setView({x, y, scale})  map.view()      centre in graph units, CSS pixels per unit; shared by all maps
     map.fit()                                   the whole graph
     map.goTo(nodes)                             centres and marks nodes: one, or those of a street; [] removes the mark
     map.outlineNext(true)                       the next drag outlines a region without Shift (for touch); map.setRegion(ring | null) draws one
     map.corners()                               the corners of the part of the graph that is in view
     map.picture()                               the map as a canvas with title, legend and attribution, as it is saved
     map.draw()                                  draws at once (before a screenshot, say); returns milliseconds
     map.destroy()                               removes listeners and elements
   map.canvas is the canvas; its dataset.drawn counts finished drawings, dataset.view is "x y scale" of the last one.

   Keys on the focused canvas: arrows move, + and - zoom, 0 or Home show the whole graph. Escape hides the hover box. */

"use strict";

const HushMap = (() => {
  const STROKES = 60000; // edges in view; above this a pixel raster is faster, and a stroke would be thinner than a pixel
  const NARROW = 700; // CSS pixels
  const NODES_AROUND = 14; // typical edges across the view of a node that was searched for
  const { unpack, unpackGraph, shapeOf, prepare, nearest, edgeValues, edgesIn } = HushMapData;
  const { INKS } = HushMapColours;
  const { nodeName, valueText } = HushMapText;
  const { strokes, fills, raster, legend, ruler } = HushMapPaint;

  function make(tag, name, parent, text) {
    const element = document.createElement(tag);
    element.className = `hush-map-${name}`;
    if (text !== undefined) element.textContent = text;
    parent?.append(element);
    return element;
  }

  function create(element, options) {
    const { label = "", unit = "", credit = "", name = "Map", digits, fitLabel = "Whole map", onRegion, onColours } = options;
    let title = options.title ?? "";
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
    const darkPage = matchMedia("(prefers-color-scheme: dark)");
    const listeners = new AbortController();
    const on = (target, type, act, more) => target.addEventListener(type, act, { signal: listeners.signal, ...more });

    element.classList.add("hush-map");
    const tools = make("div", "tools", element);
    const stage = make("div", "stage", element);
    const canvas = make("canvas", "canvas", stage);
    const context = canvas.getContext("2d");
    const bar = make("div", "bar", element);
    const key = make("div", "legend", bar);
    const ramp = make("canvas", "ramp", key);
    const ticks = make("div", "ticks", key);
    const caption = make("span", "unit", bar, label);
    const rule = make("span", "ruler", bar);
    rule.append(make("i", "length"), make("span", "metres"));
    const source = make("span", "credit", bar, credit);
    const buttons = make("span", "buttons", bar);
    const button = make("button", "fit", buttons, fitLabel);
    const pictureButton = make("button", "save", buttons, "Save picture");
    const searched = HushMapSearch.create(tools, on, goTo);
    const listLayers = HushMapLayers.chooser(tools, show);
    const showDivider = HushMapSwipe.create(stage, on, (share) => {
      state.divider = share;
      hide();
      draw();
    });
    const hover = make("div", "hover", stage);
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-roledescription", "map");
    canvas.setAttribute("aria-label", `${name}. Arrow keys move, plus and minus zoom, 0 shows everything.`);
    hover.setAttribute("role", "status");
    ramp.setAttribute("aria-hidden", "true");
    caption.hidden = !label;
    source.hidden = !credit;
    button.type = pictureButton.type = "button";
    hover.hidden = true;

    /* Everything that the drawing depends on, except the size of the element. */
    const state = {
      layers: [],
      show: options.show ?? "side", // what was chosen; `chosen` is what can be shown of it
      chosen: null,
      divider: 0.5,
      range: options.range ?? null, // set by hand
      layout: options.layout ?? "auto",
      view: null,
      marked: [], // nodes
      region: null, // corners in graph units
      isPrinted: false,
    };
    let graph, panels, stacked, colouring; // the prepared graph; panels and colours follow from the state
    let [frame, drawn, moves, outlinesNext] = [0, 0, 0, false];
    let described = null; // the node in the hover box, and the number of its panel
    const titles = [], rings = [];
    const page = () => (darkPage.matches && !state.isPrinted ? "dark" : "light");
    const maps = () => state.chosen.shown.map((one) => state.layers.find((layer) => layer.name === one));

    // ---- layers and their colours

    function setLayers(given) {
      const before = described;
      state.layers = given.map((one) => ({ ...one }));
      showChosen();
      if (before && panels?.length === maps().length) describe(before.node, panels[before.panel]);
    }

    function show(choice) {
      state.show = choice;
      showChosen();
    }

    function showChosen() {
      state.chosen = HushMapLayers.chosenOf(state.layers, state.show);
      const shown = maps();
      while (titles.length < shown.length) {
        titles.push(make("div", "title", stage));
        rings.push(make("div", "ring", stage));
      }
      titles.forEach((heading, p) => {
        heading.hidden = p >= shown.length;
        heading.replaceChildren();
        if (heading.hidden) return;
        make("strong", "name", heading, shown[p].title);
        if (shown[p].note) make("span", "note", heading, shown[p].note);
      });
      listLayers(state.layers, state.show);
      tools.hidden = [...tools.children].every((child) => child.hidden);
      recolour();
      hide();
    }

    function recolour() {
      colouring = HushMapLayers.coloured(graph, state.layers, maps(), { page: page(), fixed: state.range, edgeValues });
      legend(ramp, ticks, { layers: maps(), range: colouring.range, fixed: state.range !== null, palette: colouring.colours });
      drawLater();
      onColours?.();
    }

    // ---- panels and the view

    function arrange() {
      const [wide, high] = [stage.clientWidth, stage.clientHeight];
      const isSwipe = state.chosen.swipe;
      const [count, k, top] = [state.chosen.shown.length, isSwipe ? 1 : state.chosen.shown.length, 44];
      const fitted = (w, h) => Math.min((w - 24) / (graph.box[2] - graph.box[0] || 1), (h - top - 16) / (graph.box[3] - graph.box[1] || 1));
      stacked = state.layout === "stacked" || (state.layout === "auto" && k > 1 && (wide < NARROW || fitted(wide, high / k) > 1.05 * fitted(wide / k, high)));
      const [w, h] = stacked ? [wide, high / k] : [wide / k, high];
      const cut = Math.round(state.divider * wide);
      panels = Array.from({ length: count }, (_, p) => {
        if (isSwipe) return { left: 0, top: 0, w, h, clip: p ? { left: cut, w: wide - cut } : { left: 0, w: cut } };
        const left = stacked ? 0 : p * w;
        return { left, top: stacked ? p * h : 0, w, h, clip: { left, w } };
      });
      panels.scale = Math.max(fitted(w, h), 1e-9);
      panels.forEach((panel, p) => {
        const atRight = isSwipe && p > 0;
        const left = atRight ? "auto" : `${panel.left + (panel.left > 0)}px`;
        Object.assign(titles[p].style, { left, right: atRight ? "0" : "auto", top: `${panel.top + (panel.top > 0)}px`, maxWidth: `${isSwipe ? wide / 2 : w - 1}px` });
      });
      stage.classList.toggle("hush-map-stacked", stacked);
      stage.classList.toggle("hush-map-swiped", isSwipe);
      showDivider(isSwipe ? state.divider : null, titles.map((heading) => heading.firstChild?.textContent ?? ""));
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
      state.view = bounded(next);
      moves++;
      canvas.style.touchAction = state.view.scale === null ? "pan-y" : "none"; // one finger scrolls the page until the map is zoomed
      drawLater();
    }

    /* The view after zooming; the point under (px, py) does not move. */
    function zoomed(px, py, factor) {
      const [cx, cy] = centre(panelAt(px, py));
      const scale = scaleOf(state.view) * factor;
      const next = Math.min(Math.max(scale, panels.scale), Math.max(260 / graph.length, 8 * panels.scale));
      const [wx, wy] = [state.view.x + (px - cx) / scaleOf(state.view), state.view.y - (py - cy) / scaleOf(state.view)];
      return { x: wx - (px - cx) / next, y: wy + (py - cy) / next, scale: next };
    }

    /* Moves to a view; `then` is called at the end, unless another move came first. */
    function glide(next, then = () => {}) {
      const [from, to, began] = [{ ...state.view, scale: scaleOf(state.view) }, bounded(next), performance.now()];
      const arrive = () => {
        setView(to);
        draw();
        then();
      };
      if (reducedMotion.matches || graph.m > STROKES) return arrive();
      const number = ++moves; // another move ends this one
      const step = (now) => {
        if (number !== moves) return undefined;
        const t = Math.min(Math.max((now - began) / 180, 0), 1);
        const ease = t * (2 - t);
        const scale = from.scale * (scaleOf(to) / from.scale) ** ease;
        if (t < 1) state.view = { x: from.x + (to.x - from.x) * ease, y: from.y + (to.y - from.y) * ease, scale };
        else return arrive();
        draw();
        return requestAnimationFrame(step);
      };
      return requestAnimationFrame(step);
    }

    const panelAt = (px, py) => panels.find(({ clip, top, h }) => px < clip.left + clip.w && py < top + h && px >= clip.left && py >= top) ?? panels[0];

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
      const scale = scaleOf(state.view);
      const { w, h } = panels[0];
      const visible = edgesIn(graph, state.view.x - (w / 2 + 8) / scale, state.view.y - (h / 2 + 8) / scale, state.view.x + (w / 2 + 8) / scale, state.view.y + (h / 2 + 24) / scale);
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.clearRect(0, 0, wide, high);
      const isRaster = visible.length > STROKES && !graph.outlines;
      const images = isRaster ? rastered(visible, scale, ratio) : null;
      panels.forEach((panel, p) => within(panel, ratio, (place) => drawPanel(p, visible, place, images?.[p])));
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.fillStyle = INKS[page()].line;
      for (const { clip, top, h } of panels.slice(1)) context.fillRect(clip.left, top, stacked ? clip.w : 1, stacked ? 1 : h);
      ruler(rule, graph, state.view, scale);
      button.disabled = state.view.scale === null;
      canvas.dataset.view = `${state.view.x} ${state.view.y} ${scale}`;
      canvas.dataset.drawn = ++drawn;
      return performance.now() - began;
    }

    /* Calls draw(place) with the canvas clipped to a panel; place.x + place.scale * x is where the coordinate x is drawn. */
    function within(panel, ratio, act) {
      const [[cx, cy], scale] = [centre(panel), scaleOf(state.view)];
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.save();
      context.beginPath();
      context.rect(panel.clip.left, panel.top, panel.clip.w, panel.h);
      context.clip();
      act({ x: cx - state.view.x * scale, y: cy + state.view.y * scale, scale });
      context.restore();
    }

    function drawPanel(p, visible, place, image) {
      const inks = INKS[page()];
      const reach = graph.length * place.scale;
      const ink = graph.outlines ? Math.min(Math.max(0.02 * reach, 0.3), 1.2) : Math.min(Math.max(0.085 * reach, 0.75), 3.2);
      if (graph.backdrop) HushMapBackdrop.draw(context, graph.backdrop, place, inks);
      if (image) context.drawImage(image, panels[p].left, panels[p].top, panels[p].w, panels[p].h);
      else (graph.outlines ? fills : strokes)(context, graph, visible, maps()[p].levels, colouring.colours, place, ink);
      if (state.marked.length) drawMarks(place, inks);
      if (state.region) {
        context.beginPath();
        for (const [x, y] of state.region) context.lineTo(place.x + place.scale * x, place.y - place.scale * y);
        context.closePath();
        outlined(inks, 1.75);
      }
    }

    /* Strokes the path light under dark, so that it is seen on all colours. */
    function outlined(inks, width) {
      for (const [style, wide] of [[inks.paper, width + 2.5], [inks.ink, width]]) {
        [context.strokeStyle, context.lineWidth, context.lineJoin] = [style, wide, "round"];
        context.stroke();
      }
    }

    /* Rings around the nodes that were searched for; a street is also outlined from node to node. */
    function drawMarks({ x: left, y: top, scale }, inks) {
      const spot = (i) => [left + scale * graph.x[i], top - scale * graph.y[i]];
      const isMarked = new Set(state.marked);
      if (!graph.outlines && isMarked.size > 1) {
        context.beginPath();
        for (let e = 0; e < graph.m; e++) {
          const [i, j] = [graph.ends[2 * e], graph.ends[2 * e + 1]];
          if (!isMarked.has(i) || !isMarked.has(j)) continue;
          context.moveTo(...spot(i));
          context.lineTo(...spot(j));
        }
        outlined(inks, 2);
      }
      context.beginPath();
      for (const i of isMarked) {
        const [x, y] = spot(i);
        const radius = isMarked.size > 1 ? 3 : 7;
        context.moveTo(x + radius, y);
        context.arc(x, y, radius, 0, 2 * Math.PI);
      }
      outlined(inks, 2);
    }

    /* Pictures of the layers, one pixel each: many lines are drawn faster so. */
    function rastered(visible, scale, ratio) {
      const [wide, high] = [Math.round(panels[0].w * ratio), Math.round(panels[0].h * ratio)];
      const [cx, cy] = centre({ left: 0, top: 0, w: panels[0].w, h: panels[0].h });
      const place = { x: ratio * (cx - state.view.x * scale), y: ratio * (cy + state.view.y * scale), scale: ratio * scale };
      return raster(graph, visible, maps().map((one) => one.means), place, wide, high).map((means) => pixelPicture(means, wide, high));
    }

    function pixelPicture(means, wide, high) {
      const picture = Object.assign(document.createElement("canvas"), { width: wide, height: high });
      const image = new ImageData(wide, high);
      const pixels = new Uint32Array(image.data.buffer);
      for (let at = 0; at < means.length; at++) if (means[at] === means[at]) pixels[at] = colouring.colours.pixels[colouring.level(means[at])];
      picture.getContext("2d").putImageData(image, 0, 0);
      return picture;
    }

    /* Draws all of a layer into a small canvas, with the colours of the map. */
    function paint(target, { values }) {
      const ratio = devicePixelRatio || 1;
      const [wide, high] = [target.clientWidth * ratio, target.clientHeight * ratio].map(Math.round);
      [target.width, target.height] = [wide, high];
      if (!wide || !high) return;
      const [left, low, right, top] = graph.box;
      const scale = Math.min((wide - 4 * ratio) / (right - left || 1), (high - 4 * ratio) / (top - low || 1));
      const place = { x: wide / 2 - ((left + right) / 2) * scale, y: high / 2 + ((low + top) / 2) * scale, scale };
      const means = edgeValues(graph, values);
      const all = Uint32Array.from({ length: graph.m }, (_, e) => e);
      const pen = target.getContext("2d");
      if (graph.m > STROKES && !graph.outlines) pen.drawImage(pixelPicture(raster(graph, all, [means], place, wide, high)[0], wide, high), 0, 0);
      else (graph.outlines ? fills : strokes)(pen, graph, all, HushMapLayers.levelsOf(means, colouring.level), colouring.colours, place, (graph.outlines ? 0.3 : 0.7) * ratio);
    }

    // ---- places that were searched for

    function goTo(nodes) {
      state.marked = nodes;
      hide();
      if (!nodes.length) return drawLater();
      const box = [Infinity, Infinity, -Infinity, -Infinity];
      for (const i of nodes) {
        box[0] = Math.min(box[0], graph.x[i]);
        box[1] = Math.min(box[1], graph.y[i]);
        box[2] = Math.max(box[2], graph.x[i]);
        box[3] = Math.max(box[3], graph.y[i]);
      }
      const { w, h } = panels[0];
      const least = NODES_AROUND * graph.length;
      const scale = Math.min(w / Math.max(1.3 * (box[2] - box[0]), least), h / Math.max(1.3 * (box[3] - box[1]), least));
      const next = { x: (box[0] + box[2]) / 2, y: (box[1] + box[3]) / 2, scale: Math.max(scale, panels.scale) };
      return glide(next, () => nodes.length === 1 && describe(nodes[0], panels[0]));
    }

    // ---- regions

    /* Pixels in graph units, in the panel of the first one. */
    function placesOf(pixels) {
      const [cx, cy] = centre(panelAt(...pixels[0]));
      return pixels.map(([px, py]) => [state.view.x + (px - cx) / scaleOf(state.view), state.view.y - (py - cy) / scaleOf(state.view)]);
    }

    function setRegion(ring) {
      state.region = ring;
      drawLater();
    }

    function outlineNext(isNext) {
      outlinesNext = isNext;
      canvas.classList.toggle("hush-map-outlining", isNext);
      canvas.style.touchAction = isNext || state.view.scale !== null ? "none" : "pan-y";
    }

    function finishOutline(pixels) {
      outlineNext(false);
      const ring = pixels.length > 2 ? placesOf(pixels) : null;
      setRegion(ring);
      onRegion(ring);
    }

    function corners() {
      const { w, h } = panels[0];
      const [[cx, cy], scale] = [centre({ left: 0, top: 0, w, h }), scaleOf(state.view)];
      return [[0, h], [w, h], [w, 0], [0, 0]].map(([px, py]) => [state.view.x + (px - cx) / scale, state.view.y - (py - cy) / scale]);
    }

    // ---- values under the pointer

    function hide() {
      described = null;
      hover.hidden = true;
      rings.forEach((ring) => (ring.hidden = true));
    }

    /* Shows the values of the node at a pixel; hides the box if there is none within reach. */
    function showAt(px, py, reach) {
      const panel = panelAt(px, py);
      const scale = scaleOf(state.view);
      const [cx, cy] = centre(panel);
      const node = nearest(graph, state.view.x + (px - cx) / scale, state.view.y - (py - cy) / scale, reach / scale);
      return node < 0 ? hide() : describe(node, panel);
    }

    function describe(node, panel) {
      const [shown, scale] = [maps(), scaleOf(state.view)];
      const [low, high] = colouring.range;
      described = { node, panel: panels.indexOf(panel) };
      const places = digits ?? Math.max(0, Math.min(6, 1 - Math.floor(Math.log10((high - low) / 20))));
      const texts = shown.map((one) => valueText(one, node, places, unit));
      const called = nodeName(graph, node);
      hover.replaceChildren();
      if (shown.length === 1) make("div", "node", hover, called ? `${called}: ${texts[0]}` : texts[0]);
      else if (called) make("div", "node", hover, called);
      shown.forEach((one, p) => {
        if (shown.length > 1) {
          const line = make("div", "line", hover);
          make("span", "key", line, one.title);
          make("strong", "value", line, texts[p]);
        }
        const [qx, qy] = centre(panels[p]);
        const [x, y] = [qx + (graph.x[node] - state.view.x) * scale, qy - (graph.y[node] - state.view.y) * scale];
        rings[p].hidden = panelAt(x, y) !== panels[p] || state.marked.includes(node);
        Object.assign(rings[p].style, { left: `${x}px`, top: `${y}px` });
      });
      hover.hidden = false;
      const [cx, cy] = centre(panel);
      placeHover(cx + (graph.x[node] - state.view.x) * scale, cy - (graph.y[node] - state.view.y) * scale);
      return node;
    }

    /* Right of the node at (x, y), or left of it, or, where the map is too narrow for both, above or below it: never over the node. */
    function placeHover(x, y) {
      const { offsetWidth: wide, offsetHeight: high } = hover;
      const within = (at, size, room) => `${Math.max(4, Math.min(at, room - size - 4))}px`;
      const right = x + 14 + wide <= stage.clientWidth;
      const beside = right || x - 14 - wide >= 4;
      const left = beside ? (right ? x + 14 : x - 14 - wide) : x - wide / 2;
      const top = beside ? y - high / 2 : y - 18 - high >= 4 ? y - 18 - high : y + 18;
      hover.style.left = within(left, wide, stage.clientWidth);
      hover.style.top = within(top, high, stage.clientHeight);
    }

    // ---- input and the window

    HushMapInput.listen(canvas, on, {
      show: showAt, hide, zoomed, setView, glide, fit,
      isWhole: () => state.view.scale === null,
      isOutlining: (event) => Boolean(onRegion) && (event.shiftKey || outlinesNext),
      outline: (pixels) => setRegion(placesOf(pixels)),
      outlined: finishOutline,
      moveBy: (px, py) => setView({ x: state.view.x - px / scaleOf(state.view), y: state.view.y + py / scaleOf(state.view), scale: state.view.scale }),
      middle: () => {
        const [x, y] = centre(panels[0]);
        return { x, y, w: panels[0].w, h: panels[0].h };
      },
    });
    on(button, "click", () => fit());
    on(window, "resize", () => drawLater());
    on(pictureButton, "click", () => HushMapPicture.save(pictureParts()));
    on(darkPage, "change", () => recolour());
    for (const [type, isPrinted] of [["beforeprint", true], ["afterprint", false]]) on(window, type, () => {
      state.isPrinted = isPrinted; // paper is light
      recolour();
      draw();
    });
    const resizes = new ResizeObserver(() => {
      hide();
      draw();
    });

    function pictureParts() {
      draw();
      return { canvas, titles, title, legend: { ramp, ticks, unit: caption, rule }, credit, inks: INKS[page()] };
    }

    function fit() {
      hide();
      glide({ ...whole(), scale: null });
    }

    function setGraph(next, given) {
      graph = prepare(next);
      state.view = whole();
      state.marked = [];
      canvas.style.touchAction = "pan-y";
      searched(graph);
      setLayers(given);
    }

    setGraph(options.graph, options.layers);
    arrange();
    resizes.observe(stage);
    return {
      canvas, setLayers, setGraph, show, goTo, fit, draw, setRegion, outlineNext, corners, paint, page,
      shape: shapeOf(options.graph),
      shownLayer: () => maps().at(-1),
      spanOf: (values) => HushMapLayers.spanOf(edgeValues(graph, values)),
      setTexts: (texts) => {
        title = texts.title;
        caption.textContent = texts.label;
        caption.hidden = !texts.label;
      },
      setRange: (low, high) => {
        state.range = low === null ? null : [low, high];
        recolour();
      },
      range: () => [...colouring.range],
      setLayout: (next) => {
        state.layout = next;
        drawLater();
      },
      setView: (next) => setView(next),
      view: () => ({ ...state.view, scale: scaleOf(state.view) }),
      picture: () => HushMapPicture.compose(pictureParts()),
      destroy: () => {
        listeners.abort();
        resizes.disconnect();
        cancelAnimationFrame(frame);
        for (const child of [tools, stage, bar]) child.remove();
        element.classList.remove("hush-map");
      },
    };
  }

  return { create, unpack, unpackGraph, shapeOf, intervalLayers: HushMapLayers.intervalLayers };
})();

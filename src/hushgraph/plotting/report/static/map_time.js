/* Several windows of time, or several signals, on one map: a slider, a button that plays them, the difference of two, and small maps of all.

     const time = HushMapTime.create(map, {windows, layersOf, halfWidth, noun, label, title, overview, onLayers});
       map        what HushMap.create returns; its option onColours must call time.paint()
       windows    [{name, spoken, at}, ...]: a short name, the name as it is spoken, and "at 07:00" for "more than at 07:00"
       layersOf   async (k) => the layers of window k, as HushMap.create takes them; the one named "error" has expected errors
       halfWidth  half the width of the interval of a normal error, in expected errors
       noun       what the windows are called: "time windows"
       label, title   texts beside the legend and on saved pictures, as for HushMap.create
       overview   an empty element for the small maps, or null
       onLayers   called with the layers of the chosen window, for other maps that follow
     await time.refresh()   reads the windows again, when their values have changed, and shows the chosen one
     time.paint()           draws the small maps again, if what they show has changed

   All windows have the same colours. The map changes at once, without a movement between two windows, and nothing plays by itself. */

"use strict";

const HushMapTime = (() => {
  const MOST_SMALL_MAPS = 24;
  const MOST_KEPT = 64; // windows whose values are kept in memory
  const PACE = 1000; // milliseconds from one window to the next

  function make(tag, name, parent, text) {
    const element = document.createElement(tag);
    element.className = `hush-map-${name}`;
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  /* The layers of one window minus those of another. The noise of each window is drawn independently, so squared errors are added. */
  function difference(first, second, { halfWidth, than }) {
    const pair = first.slice(0, 2).map((one, k) => {
      const values = one.values.map((value, i) => value - second[k].values[i]);
      return { name: one.name, title: one.title, note: "difference", values, colours: "difference", than };
    });
    const [here, there] = [first, second].map((layers) => layers.find(({ name }) => name === "error")?.values);
    if (!here || !there) return pair;
    const error = here.map((value, i) => Math.hypot(value, there[i]));
    const [lower, upper] = [-1, 1].map((side) => pair[1].values.map((value, i) => value + side * halfWidth * error[i]));
    Object.assign(pair[1], { lower, upper });
    const ends = HushMapLayers.intervalLayers(lower, upper).map((one) => (one.colours ? one : { ...one, colours: "difference", than }));
    return [...pair, { name: "error", title: "Expected error", note: "of the difference", values: error, colours: "error" }, ...ends];
  }

  const ordinal = (k) => `${k}${k % 100 > 10 && k % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][k % 10] ?? "th")}`;

  function create(map, { windows, layersOf, halfWidth, noun, label, title, overview = null, onLayers = () => {} }) {
    const every = Math.ceil(windows.length / MOST_SMALL_MAPS);
    const sample = windows.map((_, k) => k).filter((k) => k % every === 0);
    let [now, other, requests, version, timer] = [0, -1, 0, 0, 0]; // other: the window that is subtracted, or -1
    let kept = new Map(); // layers by window
    let spans = new Map(); // by `other`, the span of each layer over the windows

    let drawnOther = null; // `other` of the map that is drawn; null before the first one

    const bar = document.createElement("div");
    bar.className = "hush-map-time";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", `Choice of ${noun}`);
    map.canvas.parentElement.before(bar);
    const play = make("button", "play", bar, "Play");
    const slider = make("input", "slider", bar);
    const chosen = make("strong", "window", bar);
    const compared = make("label", "compare", bar, "Compare with ");
    const list = make("select", "other", compared);
    Object.assign(slider, { type: "range", min: 0, max: windows.length - 1, step: 1, value: 0 });
    slider.setAttribute("aria-label", noun.replace(/s$/, "").replace(/^./, (letter) => letter.toUpperCase()));
    play.type = "button";
    list.append(new Option("nothing", -1), ...windows.map(({ name }, k) => new Option(name, k)));
    const buttons = overview ? smallMaps() : [];

    // ---- layers

    async function read(k) {
      const mine = kept; // which refresh() replaces
      if (mine.has(k)) return mine.get(k);
      const layers = await layersOf(k);
      if (mine.size >= MOST_KEPT) mine.delete(mine.keys().next().value);
      mine.set(k, layers);
      return layers;
    }

    /* The layers of window k, or of its difference from window `minus`. */
    async function layersAt(k, minus) {
      const layers = await read(k);
      return minus < 0 ? layers : difference(layers, await read(minus), { halfWidth, than: windows[minus].at });
    }

    /* The span of each layer over the windows, by which all have the same colours. */
    async function spansOf(minus) {
      const mine = spans;
      if (!mine.has(minus)) {
        const found = {};
        for (const k of sample) for (const { name, values } of await layersAt(k, minus)) if (values) found[name] = HushMapLayers.joined(found[name], map.spanOf(values));
        mine.set(minus, found);
      }
      return mine.get(minus);
    }

    async function show(k, minus = other) {
      [now, other] = [k, minus];
      const number = ++requests;
      slider.value = k;
      list.value = minus;
      slider.setAttribute("aria-valuetext", windows[k].spoken);
      chosen.textContent = windows[k].spoken;
      buttons.forEach((button, b) => {
        button.setAttribute("aria-pressed", sample[b] === k);
        const { parentElement: row, offsetLeft, offsetWidth } = button;
        if (sample[b] === k) row.scrollLeft = offsetLeft - row.offsetLeft - (row.clientWidth - offsetWidth) / 2; // where they are in one row
      });
      const [span, layers] = [await spansOf(minus), await layersAt(k, minus)];
      if (number !== requests) return; // another window was chosen in the meantime
      const from = minus < 0 ? null : windows[minus];
      map.setTexts({
        label: from ? `${label ? `${label}: ` : ""}${windows[k].name} minus ${from.name}` : label,
        title: from ? `${title}: ${windows[k].spoken}, minus ${from.spoken}` : `${title}: ${windows[k].spoken}`,
      });
      const alike = layers.map((one) => ({ ...one, span: span[one.name] }));
      drawnOther = minus;
      map.setLayers(alike);
      onLayers(alike);
    }

    // ---- playing

    function stop() {
      clearTimeout(timer);
      timer = 0;
      play.textContent = "Play";
    }

    async function step(k) {
      await show(k);
      if (!timer) return; // paused in the meantime
      if (k === windows.length - 1) stop();
      else timer = setTimeout(() => step(now + 1), PACE);
    }

    function toggle() {
      if (timer) return stop();
      play.textContent = "Pause";
      timer = setTimeout(() => step(now === windows.length - 1 ? 0 : now + 1), 0);
      return undefined;
    }

    play.addEventListener("click", toggle);
    slider.addEventListener("input", () => {
      stop();
      show(Number(slider.value));
    });
    slider.addEventListener("keydown", (event) => {
      if (event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
    list.addEventListener("change", () => show(now, Number(list.value)));

    // ---- small maps

    function smallMaps() {
      overview.classList.add("hush-map-overview");
      make("p", "overview-note", overview);
      const group = make("div", "small-maps", overview);
      group.setAttribute("role", "group");
      group.setAttribute("aria-label", `Maps of ${noun}`);
      group.style.setProperty("--shape", map.shape);
      return sample.map((k) => {
        const button = make("button", "small-map", group);
        button.type = "button";
        make("canvas", "small-canvas", button).setAttribute("aria-hidden", "true");
        make("span", "small-name", button, windows[k].name.replaceAll("–", "\u2060–\u2060")); // a narrow name is broken before the hours
        button.addEventListener("click", () => {
          stop();
          bar.scrollIntoView({ block: "nearest" });
          show(k);
        });
        return button;
      });
    }

    let [painted, drawn] = ["", []]; // what the small maps show, and their layers

    /* Draws the small maps one after another, so that the page answers in between; at once before the page is printed. */
    async function paint() {
      const wide = buttons[0]?.firstChild.clientWidth; // 0 while they are folded
      if (!wide || drawnOther === null) return;
      const [layer, minus] = [map.shownLayer(), drawnOther];
      const look = [layer.name, minus, version, map.page(), map.range(), wide].join();
      if (look === painted) return;
      painted = look;
      const which = every === 1 ? `All ${windows.length} ${noun}` : `Every ${ordinal(every)} of the ${windows.length} ${noun}`;
      const what = `${layer.title.toLowerCase()}${minus < 0 ? "" : ` minus ${windows[minus].name}`}`;
      overview.firstChild.textContent = `${which}: ${what}, with the colours of the map. Choose one to see it large.`;
      for (const [b, k] of sample.entries()) {
        const found = (await layersAt(k, minus)).find(({ name }) => name === layer.name);
        if (painted !== look) return;
        drawn[b] = found;
        map.paint(buttons[b].firstChild, found);
        await new Promise((next) => setTimeout(next));
      }
    }

    if (overview) {
      new ResizeObserver(paint).observe(overview);
      for (const type of ["beforeprint", "afterprint"]) addEventListener(type, () => drawn.forEach((layer, b) => map.paint(buttons[b].firstChild, layer)));
    }

    function refresh() {
      [kept, spans, drawn] = [new Map(), new Map(), []];
      version++;
      return show(now);
    }

    return { refresh, paint };
  }

  return { create };
})();

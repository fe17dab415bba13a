/* The page of the report: unpacks the values and draws the maps with map.js. Everything else on the page is plain HTML. */
"use strict";

(async () => {
  const data = JSON.parse(document.getElementById("hush-data").textContent);
  if (!data.graph) return;
  const maps = document.getElementById("maps");
  const error = document.getElementById("error-map");
  try {
    const graph = await HushMap.unpackGraph(data.graph);
    for (const element of [maps, error]) element?.style.setProperty("--shape", HushMap.shapeOf(graph));

    /* The layers of a column; what the result does not know is left out. */
    async function layersOf(column) {
      const packed = data.columns[column];
      const values = {};
      for (const name of Object.keys(packed)) values[name] = await HushMap.unpack(packed[name]);
      const { noisy, denoised, error: expected, lower, upper } = values;
      const layers = [
        { name: "noisy", title: "Noisy", note: data.notes[0], values: noisy },
        { name: "denoised", title: "Denoised", note: data.notes[1], values: denoised, lower, upper },
      ];
      if (expected) layers.push({ name: "error", title: "Expected error", note: data.notes[2], values: expected, colours: "error" });
      return lower ? [...layers, ...HushMap.intervalLayers(lower, upper)] : layers;
    }

    const common = { graph, label: data.label, unit: data.unit, credit: data.credit, fitLabel: data.fit };
    let layers = await layersOf(0);
    maps.replaceChildren();
    let time = null; // of several windows
    const both = HushMap.create(maps, { ...common, layers, title: data.title, name: "Noisy and denoised map", digits: data.digits, onColours: () => time?.paint() });
    let errorMap = null;
    const errorLayer = () => layers.filter(({ name }) => name === "error");
    const drawError = () => {
      if (!error || errorMap) return;
      error.replaceChildren();
      errorMap = HushMap.create(error, { ...common, layers: errorLayer(), title: `${data.title}: expected error`, name: "Map of the expected error", digits: data.digits + 1 });
    };
    // The second map is drawn when it comes into view, when the browser is idle, or at the latest when the page is printed.
    const visibility = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && drawError(), { rootMargin: "300px" });
    const whenIdle = window.requestIdleCallback ?? ((act) => setTimeout(act, 300)); // not in Safari
    if (data.columns.length > 1) {
      const follow = (next) => {
        layers = next;
        errorMap?.setLayers(errorLayer());
      };
      const { windows, half_width: halfWidth, windows_name: noun, label, title } = data;
      time = HushMapTime.create(both, { windows, layersOf, halfWidth, noun, label, title, overview: document.getElementById("windows"), onLayers: follow });
      await time.refresh();
    }
    addEventListener("beforeprint", () => {
      drawError();
      errorMap?.draw();
    });
    if (error) visibility.observe(error);
    whenIdle(drawError, { timeout: 2000 });
    document.documentElement.dataset.ready = "yes";
  } catch (reason) {
    for (const element of [maps, error]) if (element) element.textContent = "This browser cannot read the maps: it needs DecompressionStream (2023 or newer).";
    console.error(reason);
  }
})();

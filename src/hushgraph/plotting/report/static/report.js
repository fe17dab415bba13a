/* The page of the report: unpacks the values and draws the maps with map.js. Everything else on the page is plain HTML. */
"use strict";

(async () => {
  const data = JSON.parse(document.getElementById("hush-data").textContent);
  if (!data.graph) return;
  const maps = document.getElementById("maps");
  const error = document.getElementById("error-map");
  const columns = document.getElementById("column");
  try {
    const graph = await HushMap.unpackGraph(data.graph);
    const values = (column, name) => HushMap.unpack(data.columns[column][name]);
    const extent = (axis) => axis.reduce((most, v) => Math.max(most, v), 0); // coordinates begin at 0
    const ratio = Math.min(Math.max(extent(graph.y) / (extent(graph.x) || 1), 0.4), 1.7);
    for (const element of [maps, error]) element?.style.setProperty("--shape", ratio);
    let current = 0; // the column on the page
    const pair = async (column) => [
      { title: "Noisy", note: data.notes[0], values: await values(column, "noisy") },
      { title: "Denoised", note: data.notes[1], values: await values(column, "denoised") },
    ];
    const first = await pair(0);
    maps.replaceChildren();
    const both = HushMap.create(maps, { graph, maps: first, name: "Noisy and denoised map", digits: data.digits, fitLabel: data.fit });
    let [errorMap, errorValues] = [null, null];
    const errorMaps = () => [{ title: "Expected error", note: data.notes[2], values: errorValues }];
    const drawError = () => {
      if (!error || errorMap || !errorValues) return;
      error.replaceChildren();
      errorMap = HushMap.create(error, { graph, maps: errorMaps(), name: "Map of the expected error", digits: data.digits + 1, colours: "error", fitLabel: data.fit });
    };
    const unpackError = async () => {
      if (!error) return;
      errorValues = await values(current, "error");
      errorMap?.setMaps(errorMaps());
    };
    // The second map is drawn when it comes into view, when the browser is idle, or at the latest when the page is printed. The event
    // before printing cannot wait, so the values are unpacked in advance.
    const visibility = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && drawError(), { rootMargin: "300px" });
    const whenIdle = window.requestIdleCallback ?? ((act) => setTimeout(act, 300)); // not in Safari
    columns?.addEventListener("change", async () => {
      const chosen = (current = Number(columns.value));
      const next = await pair(chosen);
      if (chosen !== current) return; // another column was chosen in the meantime
      both.setMaps(next);
      await unpackError();
    });
    addEventListener("beforeprint", () => {
      drawError();
      errorMap?.draw();
    });
    await unpackError();
    if (error) visibility.observe(error);
    whenIdle(drawError, { timeout: 2000 });
    document.documentElement.dataset.ready = "yes";
  } catch (reason) {
    for (const element of [maps, error]) if (element) element.textContent = "This browser cannot read the maps: it needs DecompressionStream (2023 or newer).";
    console.error(reason);
  }
})();

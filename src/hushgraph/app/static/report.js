/* The report's page: reads the packed maps and hands them to the map module. Everything else on the page is plain HTML. */
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
    const shape = (axis) => axis.reduce((most, v) => Math.max(most, v), 0); // axes begin at 0
    const ratio = Math.min(Math.max(shape(graph.y) / (shape(graph.x) || 1), 0.4), 1.7);
    for (const element of [maps, error]) element?.style.setProperty("--shape", ratio);
    let now = 0;
    const pair = async (column) => [
      { title: "Noisy", note: data.notes[0], values: await values(column, "noisy") },
      { title: "Denoised", note: data.notes[1], values: await values(column, "denoised") },
    ];
    const shown = await pair(0);
    maps.replaceChildren();
    const both = HushMap.create(maps, { graph, maps: shown, name: "Noisy and denoised map", digits: data.digits, fitLabel: data.fit });
    let single = null;
    const showError = async () => {
      const list = [{ title: "Expected error", note: data.notes[2], values: await values(now, "error") }];
      if (single) return single.setMaps(list);
      error.replaceChildren();
      single = HushMap.create(error, { graph, maps: list, name: "Map of the expected error", digits: data.digits + 1, colours: "error", fitLabel: data.fit });
      return single;
    };
    // A large map is worked out when it is about to be seen.
    const watching = new IntersectionObserver((seen) => {
      if (!seen.some((one) => one.isIntersecting)) return;
      watching.disconnect();
      showError();
    }, { rootMargin: "300px" });
    if (error) watching.observe(error);
    columns?.addEventListener("change", async () => {
      now = Number(columns.value);
      both.setMaps(await pair(now));
      if (single) showError();
    });
    addEventListener("beforeprint", () => error && !single && showError());
    document.documentElement.dataset.ready = "yes";
  } catch (fault) {
    for (const element of [maps, error]) if (element) element.textContent = "This browser cannot read the maps: it needs DecompressionStream (2023 or newer).";
    console.error(fault);
  }
})();

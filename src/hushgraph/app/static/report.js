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
    let [single, unpacked] = [null, null];
    const list = () => [{ title: "Expected error", note: data.notes[2], values: unpacked }];
    const drawError = () => {
      if (!error || single || !unpacked) return;
      error.replaceChildren();
      single = HushMap.create(error, { graph, maps: list(), name: "Map of the expected error", digits: data.digits + 1, colours: "error", fitLabel: data.fit });
    };
    const unpackError = async () => {
      if (!error) return;
      unpacked = await values(now, "error");
      single?.setMaps(list());
    };
    // A large map is worked out when it is about to be seen, when nothing else is to be done, or, at the latest, to be printed:
    // a print waits for nobody, so that the values are unpacked beforehand.
    const watching = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && drawError(), { rootMargin: "300px" });
    const idle = window.requestIdleCallback ?? ((act) => setTimeout(act, 300)); // Safari has none
    columns?.addEventListener("change", async () => {
      const mine = (now = Number(columns.value));
      const next = await pair(mine);
      if (mine !== now) return; // another was chosen meanwhile
      both.setMaps(next);
      await unpackError();
    });
    addEventListener("beforeprint", () => {
      drawError();
      single?.draw();
    });
    await unpackError();
    if (error) watching.observe(error);
    idle(drawError, { timeout: 2000 });
    document.documentElement.dataset.ready = "yes";
  } catch (fault) {
    for (const element of [maps, error]) if (element) element.textContent = "This browser cannot read the maps: it needs DecompressionStream (2023 or newer).";
    console.error(fault);
  }
})();

/* Input of a map: pointers, touch, the wheel and keys change its view.

   HushMapInput.listen(canvas, on, map): `on` adds a listener that is removed with the map. Of `map` it uses isWhole(), show(px, py,
   reach), hide(), moveBy(px, py), zoomed(px, py, factor), setView(view), glide(view), fit() and middle(), and for regions
   isOutlining(event), outline(pixels) and outlined(pixels); pixels are CSS pixels from the canvas's corner. */

"use strict";

const HushMapInput = (() => {
  const NEAR = 16, NEAR_FINGER = 28, NEAR_KEYS = 60; // pixels within which a node is selected

  const pixelOf = (canvas, event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function pointers(canvas, on, map) {
    const down = new Map();
    let drawing = null; // the pixels of an outline, and the pointer that draws it
    on(canvas, "pointerdown", (event) => {
      if (event.button) return;
      if (!down.size && !drawing && map.isOutlining(event)) {
        drawing = { id: event.pointerId, pixels: [pixelOf(canvas, event)] };
        map.hide();
        canvas.setPointerCapture(event.pointerId);
        return;
      }
      if (drawing) return;
      down.set(event.pointerId, pixelOf(canvas, event));
      if (event.pointerType === "touch" && map.isWhole() && down.size === 1) return; // scrolls the page
      canvas.setPointerCapture(event.pointerId);
    });
    on(canvas, "pointermove", (event) => {
      const [px, py] = pixelOf(canvas, event);
      if (drawing) {
        if (drawing.id !== event.pointerId) return undefined;
        drawing.pixels.push([px, py]);
        return map.outline(drawing.pixels);
      }
      const last = down.get(event.pointerId);
      if (!last) return void (event.pointerType !== "touch" && map.show(px, py, NEAR));
      if (down.size === 1 && event.pointerType === "touch" && map.isWhole()) return;
      map.hide();
      canvas.classList.add("hush-map-dragged");
      const before = [...down.values()];
      down.set(event.pointerId, [px, py]);
      if (down.size === 1) return map.moveBy(px - last[0], py - last[1]);
      pinch(map, before, [...down.values()]);
    });
    for (const type of ["pointerup", "pointercancel"]) on(canvas, type, (event) => {
      if (drawing?.id === event.pointerId) {
        const { pixels } = drawing;
        drawing = null;
        return map.outlined(type === "pointerup" ? pixels : []);
      }
      const tapped = event.pointerType === "touch" && type === "pointerup" && !canvas.classList.contains("hush-map-dragged");
      down.delete(event.pointerId);
      if (!down.size) canvas.classList.remove("hush-map-dragged");
      if (tapped) map.show(...pixelOf(canvas, event), NEAR_FINGER);
      return undefined;
    });
    on(canvas, "pointerleave", (event) => event.pointerType === "mouse" && map.hide());
    on(canvas, "dblclick", (event) => map.glide(map.zoomed(...pixelOf(canvas, event), event.shiftKey ? 0.5 : 2)));
  }

  /* The point between the fingers stays between them. */
  function pinch(map, before, after) {
    const span = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
    const middle = ([a, b]) => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
    const [from, to] = [middle(before), middle(after)];
    const next = map.zoomed(...from, span(after) / span(before));
    map.setView({ ...next, x: next.x - (to[0] - from[0]) / next.scale, y: next.y + (to[1] - from[1]) / next.scale });
  }

  function wheel(canvas, on, map) {
    let scrolled = -Infinity;
    on(window, "scroll", () => (scrolled = performance.now()), { passive: true, capture: true });
    on(canvas, "wheel", (event) => {
      const out = event.deltaY > 0 && map.isWhole();
      if (!event.ctrlKey && (out || performance.now() - scrolled < 250)) return; // a page that is being scrolled keeps scrolling
      event.preventDefault();
      map.hide();
      const turned = Math.max(-240, Math.min(240, event.deltaY * (event.deltaMode === 1 ? 30 : 1)));
      map.setView(map.zoomed(...pixelOf(canvas, event), Math.exp(-turned * (event.ctrlKey ? 0.01 : 0.0022))));
    }, { passive: false });
  }

  function keys(canvas, on, map) {
    on(canvas, "keydown", (event) => {
      const go = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      const zoom = { "+": 1.5, "=": 1.5, "-": 1 / 1.5, _: 1 / 1.5 }[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const { x, y, w, h } = map.middle();
      if (go) map.moveBy((go[0] * w) / 8, (go[1] * h) / 8);
      else if (zoom) map.setView(map.zoomed(x, y, zoom));
      else if (event.key === "0" || event.key === "Home") map.fit();
      else if (event.key === "Escape") return map.hide();
      else return;
      event.preventDefault();
      map.show(x, y, NEAR_KEYS); // shows values to users without a pointer
    });
  }

  function listen(canvas, on, map) {
    for (const add of [pointers, wheel, keys]) add(canvas, on, map);
  }

  return { listen };
})();

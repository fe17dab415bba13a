/* "Save picture": the map as it is seen, with title, legend, scale bar and attribution drawn in, as a PNG file.

   HushMapPicture.save({canvas, titles, title, legend, credit, inks}): `titles` are the elements with the names of the maps, `legend` has the
   elements ramp, ticks, unit and rule beside the map. */

"use strict";

const HushMapPicture = (() => {
  const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
  const [EDGE, HEAD, FOOT, LINE] = [16, 48, 58, 17]; // CSS pixels

  /* Lines of words that are at most `wide` pixels long. */
  function wrapped(pen, text, wide) {
    const lines = [];
    for (const word of text.split(/\s+/)) {
      const longer = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && pen.measureText(longer).width <= wide) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  function drawTitles(pen, stage, titles, top, inks) {
    const origin = stage.getBoundingClientRect();
    for (const element of titles) {
      if (element.hidden) continue;
      const box = element.getBoundingClientRect();
      pen.font = `650 14px ${FONT}`;
      pen.fillStyle = inks.paper;
      pen.fillRect(box.left - origin.left, top + box.top - origin.top, box.width, box.height);
      pen.fillStyle = inks.ink;
      pen.fillText(element.firstChild.textContent, box.left - origin.left + 14, top + box.top - origin.top + 22, box.width - 20);
    }
  }

  function drawLegend(pen, { ramp, ticks, unit, rule }, top, wide, inks) {
    const long = Math.min(280, wide - 2 * EDGE - 130);
    pen.drawImage(ramp, EDGE, top, long, 10);
    pen.font = `12.5px ${FONT}`;
    pen.fillStyle = inks.quiet;
    for (const tick of ticks.children) {
      const share = parseFloat(tick.style.left) / 100;
      pen.textAlign = share > 0.9 ? "right" : share < 0.1 ? "left" : "center";
      pen.fillText(tick.textContent, EDGE + share * long, top + 25);
    }
    pen.textAlign = "left";
    pen.fillText(unit.textContent, EDGE, top + 43, wide - 2 * EDGE);
    if (rule.hidden) return;
    const [length, text] = [rule.firstChild.getBoundingClientRect().width, rule.lastChild.textContent];
    pen.textAlign = "right";
    pen.fillText(text, wide - EDGE, top + 9);
    const right = wide - EDGE - pen.measureText(text).width - 8;
    [pen.strokeStyle, pen.lineWidth] = [inks.ink, 1.5];
    pen.beginPath();
    for (const [x, y] of [[right - length, top + 1], [right - length, top + 9], [right, top + 9], [right, top + 1]]) pen.lineTo(x, y);
    pen.stroke();
    pen.textAlign = "left";
  }

  /* The picture as a canvas. */
  function compose({ canvas, titles, title, legend, credit, inks }) {
    const stage = canvas.parentElement;
    const ratio = canvas.width / stage.clientWidth;
    const [wide, high] = [stage.clientWidth, stage.clientHeight];
    const picture = document.createElement("canvas");
    const pen = picture.getContext("2d");
    pen.font = `650 18px ${FONT}`;
    const heads = title ? wrapped(pen, title, wide - 2 * EDGE) : [];
    pen.font = `11.5px ${FONT}`;
    const credits = credit ? wrapped(pen, credit, wide - 2 * EDGE) : [];
    const top = heads.length ? HEAD + 24 * (heads.length - 1) : 0;
    [picture.width, picture.height] = [canvas.width, Math.round(ratio * (top + high + FOOT + LINE * credits.length + 8))];
    pen.scale(ratio, ratio);
    pen.fillStyle = inks.paper;
    pen.fillRect(0, 0, wide, picture.height / ratio);
    pen.drawImage(canvas, 0, top, wide, high);
    pen.font = `650 18px ${FONT}`;
    pen.fillStyle = inks.ink;
    heads.forEach((line, k) => pen.fillText(line, EDGE, 31 + 24 * k));
    drawTitles(pen, stage, titles, top, inks);
    drawLegend(pen, legend, top + high + 14, wide, inks);
    pen.font = `11.5px ${FONT}`;
    pen.fillStyle = inks.quiet;
    credits.forEach((line, k) => pen.fillText(line, EDGE, top + high + FOOT + 14 + LINE * k));
    return picture;
  }

  /* A file name of the title: letters, digits and hyphens. */
  const fileName = (title) => `${title.toLowerCase().normalize("NFD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "map"}.png`;

  function save(parts) {
    compose(parts).toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = fileName(parts.title);
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    });
  }

  return { save, compose };
})();

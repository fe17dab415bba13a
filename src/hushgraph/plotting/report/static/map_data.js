/* Data of the map: it unpacks numbers and graphs, and prepares a graph once, so that the node nearest to a pointer and the edges in
   view are found fast. The packed form is written by hushgraph.plotting (report/packing.py). Nothing is drawn here. */

"use strict";

const HushMapData = (() => {
  const CHUNK = 512; // consecutive edges that share a bounding box

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
      const integer = (zigzag >>> 1) ^ -(zigzag & 1);
      sum = difference ? sum + integer : integer;
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
    const labels = packed.labels ? JSON.parse(new TextDecoder().decode(await inflate(packed.labels))) : null;
    return { n: x.length, x, y, ends, labels, metres: packed.metres, latitude: packed.latitude };
  }

  // ---- preparation, once for a graph -----------------------------------------------------------------------------

  function prepare(graph) {
    const { n, x, y } = graph;
    const isolated = new Uint8Array(n).fill(1);
    for (const i of graph.ends) isolated[i] = 0;
    const dots = [];
    for (let i = 0; i < n; i++) if (isolated[i]) dots.push(i, i); // a node without edges is drawn as an edge of length 0: a dot
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

  /* Nodes by square cells, to find the node nearest to a pointer. */
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

  /* The node nearest to (px, py) within `reach`; -1 if there is none. */
  function nearest(graph, px, py, reach) {
    const { size, columns, rows, first, nodes } = graph.grid;
    const column = (v) => Math.floor((v - graph.box[0]) / size);
    const row = (v) => Math.floor((v - graph.box[1]) / size);
    let [best, least] = [-1, reach * reach];
    for (let r = Math.max(0, row(py - reach)); r <= Math.min(rows - 1, row(py + reach)); r++) {
      for (let c = Math.max(0, column(px - reach)); c <= Math.min(columns - 1, column(px + reach)); c++) {
        for (let k = first[r * columns + c]; k < first[r * columns + c + 1]; k++) {
          const distance = (graph.x[nodes[k]] - px) ** 2 + (graph.y[nodes[k]] - py) ** 2;
          if (distance <= least) [best, least] = [nodes[k], distance];
        }
      }
    }
    return best;
  }

  /* Mean of the values at both ends of each edge; the value at one end if the other has none. */
  function edgeValues(graph, values) {
    const means = new Float32Array(graph.m);
    for (let e = 0; e < graph.m; e++) {
      const a = values[graph.ends[2 * e]], b = values[graph.ends[2 * e + 1]];
      means[e] = Number.isNaN(a) ? b : Number.isNaN(b) ? a : (a + b) / 2;
    }
    return means;
  }

  /* Edges that may cross a rectangle. */
  function edgesIn(graph, left, low, right, high) {
    const { x, y, ends, boxes, m } = graph;
    const visible = new Uint32Array(m);
    let count = 0;
    for (let c = 0; c < boxes.length / 4; c++) {
      if (boxes[4 * c] > right || boxes[4 * c + 2] < left || boxes[4 * c + 1] > high || boxes[4 * c + 3] < low) continue;
      for (let e = c * CHUNK; e < Math.min(m, (c + 1) * CHUNK); e++) {
        const i = ends[2 * e], j = ends[2 * e + 1];
        if ((x[i] < left && x[j] < left) || (x[i] > right && x[j] > right)) continue;
        if ((y[i] < low && y[j] < low) || (y[i] > high && y[j] > high)) continue;
        visible[count++] = e;
      }
    }
    return visible.subarray(0, count);
  }

  return { unpack, unpackGraph, prepare, nearest, edgeValues, edgesIn };
})();

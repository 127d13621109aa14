'use strict';
(() => {
  const axis = text => {
    const [min, max, kind, unit] = text.split(',');
    const lo = +min, hi = +max, log = kind === 'log';
    return { lo, hi, log, unit, at: t => log ? lo * (hi / lo) ** t : lo + (hi - lo) * t };
  };
  const figure = v => {
    const a = Math.abs(v);
    if (a >= 1000) return Math.round(v).toLocaleString('en-US');
    return a === 0 ? '0' : String(+v.toPrecision(3));
  };
  const make = (name, parent) => {
    const e = document.createElement(name === 'i' ? 'i' : 'div');
    if (name !== 'i') e.className = name;
    parent.append(e);
    return e;
  };
  const zoomed = [];

  for (const chart of document.querySelectorAll('.chart')) {
    const plot = chart.querySelector('.plot'), svg = plot.querySelector('svg');
    const x = axis(chart.dataset.x), y = axis(chart.dataset.y), names = chart.dataset.names?.split('\n');
    let view = [0, 1000];
    const curves = [...svg.querySelectorAll('path.l')].map(path => {
      const n = path.getAttribute('d').match(/-?[\d.]+(?=,)|(?<=,)-?[\d.]+/g).map(Number);
      const xs = [], ys = [];
      for (let i = 0; i < n.length; i += 2) { xs.push(n[i]); ys.push(n[i + 1]); }
      return { path, xs, ys, name: path.querySelector('title').textContent, on: true,
        steps: path.classList.contains('steps'), stack: path.classList.contains('stack') };
    });

    for (const button of chart.querySelectorAll('.legend button')) {
      button.addEventListener('click', () => {
        const on = button.getAttribute('aria-pressed') !== 'true';
        button.setAttribute('aria-pressed', on);
        for (const c of curves) if (c.path.dataset.s === button.dataset.s) c.on = on;
        for (const p of svg.querySelectorAll(`[data-s="${button.dataset.s}"]`)) p.classList.toggle('off', !on);
      });
    }

    if (!curves.length) continue; // of dots, each says what it is
    const rule = make('rule off', plot), tip = make('tip off', plot);
    // Curves of the same points are read at the nearest, others between theirs, or at their nearer end.
    const same = curves.every(c => !c.steps && c.xs.length === curves[0].xs.length && c.xs.every((v, i) => v === curves[0].xs[i]));
    const read = (c, at) => {
      const i = c.xs.findIndex(v => v > at);
      if (i <= 0) return c.ys[i < 0 ? c.ys.length - 1 : 0];
      if (c.steps) return c.ys[i - 1];
      return c.ys[i - 1] + (c.ys[i] - c.ys[i - 1]) * (at - c.xs[i - 1]) / (c.xs[i] - c.xs[i - 1]);
    };
    const show = t => {
      let place = view[0] + t * (view[1] - view[0]);
      if (same) {
        const at = place;
        place = curves[0].xs.reduce((best, v) => Math.abs(v - at) < Math.abs(best - at) ? v : best);
        t = Math.min(Math.max((place - view[0]) / (view[1] - view[0]), 0), 1);
      }
      const lines = [];
      curves.forEach((c, k) => {
        if (!c.on) return;
        let v = y.at(1 - read(c, place) / 1000);
        if (c.stack && k > 0) v -= y.at(1 - read(curves[k - 1], place) / 1000);
        lines.push([c.path.classList[1], `${c.name}: ${figure(v)} ${y.unit}`]);
      });
      const at = x.at(place / 1000);
      tip.textContent = names ? names[Math.min(Math.max(Math.round(at), 0), names.length - 1)] : `${figure(at)} ${x.unit}`;
      for (const [colour, text] of lines) {
        tip.append(document.createElement('br'));
        make('i', tip).className = colour;
        tip.append(text);
      }
      rule.style.left = `${t * 100}%`;
      tip.style.left = t < 0.5 ? `calc(${t * 100}% + 10px)` : 'auto';
      tip.style.right = t < 0.5 ? 'auto' : `calc(${(1 - t) * 100}% + 10px)`;
      rule.classList.remove('off');
      tip.classList.remove('off');
    };
    const hide = () => { rule.classList.add('off'); tip.classList.add('off'); };
    const share = e => {
      const box = svg.getBoundingClientRect();
      return Math.min(Math.max((e.clientX - box.left) / box.width, 0), 1);
    };
    let from = null, box = null;
    plot.addEventListener('pointermove', e => {
      const t = share(e);
      show(t);
      if (from !== null && box) {
        box.style.left = `${Math.min(from, t) * 100}%`;
        box.style.width = `${Math.abs(t - from) * 100}%`;
      }
    });
    plot.addEventListener('pointerleave', hide);
    if (!('zoom' in chart.dataset)) continue;

    const look = to => {
      view = to;
      svg.setAttribute('viewBox', `${to[0]} 0 ${to[1] - to[0]} 1000`);
      const lo = x.at(to[0] / 1000), hi = x.at(to[1] / 1000);
      const rough = (hi - lo) / 6, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map(s => s * power).find(s => s >= rough * 0.9999);
      let grid = '';
      for (const old of plot.querySelectorAll('span.x')) old.remove();
      for (let v = Math.ceil(lo / step - 1e-9) * step; v <= hi + step * 1e-9; v += step) {
        const label = document.createElement('span');
        label.className = 'x';
        label.style.left = `${(v - lo) / (hi - lo) * 100}%`;
        label.textContent = +v.toPrecision(6);
        plot.append(label);
        grid += `M${to[0] + (v - lo) / (hi - lo) * (to[1] - to[0])},0v1000`;
      }
      svg.querySelector('.gx').setAttribute('d', grid);
    };
    zoomed.push(look);
    plot.addEventListener('pointerdown', e => {
      if (e.pointerType !== 'mouse' || e.button !== 0) return;
      from = share(e);
      box = make('sel', plot);
      plot.setPointerCapture(e.pointerId);
      e.preventDefault();
    });
    plot.addEventListener('pointerup', e => {
      if (from === null) return;
      const to = share(e), range = [Math.min(from, to), Math.max(from, to)];
      box.remove();
      from = box = null;
      if (range[1] - range[0] < 0.02 || (view[1] - view[0]) * (range[1] - range[0]) < 2) return;
      const next = range.map(t => view[0] + t * (view[1] - view[0]));
      for (const f of zoomed) f(next);
    });
    plot.addEventListener('dblclick', () => { for (const f of zoomed) f([0, 1000]); });
  }
})();

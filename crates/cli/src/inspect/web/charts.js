// Draws the figures of the last minutes, each with its scale and a time axis.

import { SECONDS } from './rows.js';
import { draw, make, short } from './text.js';

const WIDTH = SECONDS, HEIGHT = 72;
const CHARTS = [
  ['sent', 'out', '--link', '/s'],
  ['received', 'in', '--in', '/s'],
  ['lost', 'lost', '--bad', '/s'],
  ['waiting', 'queued', '--some', ''],
];

// The smallest round number that is not below a value.
function above(value) {
  const ten = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map(step => step * ten).find(step => step >= value * 0.9999);
}

function chart([name, field, colour, unit], samples, now) {
  const values = samples.map(one => one[field]), most = Math.max(0, ...values);
  // A line that was always 0 has no scale.
  const top = most > 0 ? above(most) : 0;
  const svg = draw('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none' });
  for (const y of [0.5, HEIGHT / 2, HEIGHT - 0.5]) svg.append(draw('line', { class: 'grid', x1: 0, x2: WIDTH, y1: y, y2: y }));
  for (const x of [WIDTH / 3, WIDTH * 2 / 3]) svg.append(draw('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: HEIGHT }));
  const points = samples.map(one => `${(WIDTH - (now - one.at) / 1e6).toFixed(1)},${(HEIGHT - 1 - (top ? one[field] / top : 0) * (HEIGHT - 2)).toFixed(1)}`);
  const path = draw('path', { d: points.map((point, at) => (at ? 'L' : 'M') + point).join('') });
  path.style.stroke = `var(${colour})`;
  svg.append(path);
  const scale = top ? [top, top / 2, 0] : ['', '', 0];
  return make('div', { class: 'chart' },
    make('div', { class: 'caption' }, make('b', { textContent: name }), make('span', { textContent: short(values.at(-1) || 0) + unit }),
      make('span', { class: 'dim most', textContent: most > 0 ? `at most ${short(most)}` : '' })),
    make('div', { class: 'scale' }, ...scale.map(value => make('span', { textContent: value === '' ? '' : short(value) }))),
    svg,
    make('div', { class: 'time' }, ...['−3 min', '−2 min', '−1 min', 'now'].map(text => make('span', { textContent: text }))));
}

export function drawCharts(place, samples, now) {
  place.replaceChildren(...CHARTS.map(one => chart(one, samples, now)));
}

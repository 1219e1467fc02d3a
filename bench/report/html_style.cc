// SPDX-License-Identifier: Apache-2.0

#include "bench/report/html_style.h"

namespace bench {

// Each colour of a series differs from the background by a contrast of 3 : 1 or more.
const char kHtmlStyle[] = R"css(:root {
  color-scheme: light dark;
  --back: #ffffff; --text: #1b1f24; --soft: #57606a; --rule: #d8dee4; --panel: #f6f8fa;
  --c0: #0b62a4; --c1: #b8430b; --c2: #1a7f37; --c3: #8250df;
  --c4: #8a6100; --c5: #b3256a; --c6: #0e7c86; --c7: #57606a;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --back: #0d1117; --text: #e6edf3; --soft: #9da7b3; --rule: #30363d; --panel: #161b22;
    --c0: #6cb6ff; --c1: #ff9b5e; --c2: #6bc46d; --c3: #d2a8ff;
    --c4: #e3b341; --c5: #f778ba; --c6: #56d4dd; --c7: #adbac7;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1rem; max-width: 75rem; background: var(--back); color: var(--text);
  font: 1rem/1.5 system-ui, "DejaVu Sans", "Liberation Sans", Arial, sans-serif;
}
h1 { font-size: 1.6rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; border-bottom: 1px solid var(--rule); }
p, nav, li { overflow-wrap: anywhere; }
.note { color: var(--soft); max-width: 60rem; }
nav ul, .legend { list-style: none; margin: 0.5rem 0; padding: 0; display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; }
a { color: var(--c0); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem; align-items: start; }
figure { margin: 0; padding: 0.75rem; background: var(--panel); border: 1px solid var(--rule); border-radius: 6px; min-width: 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
.chart { display: block; width: 100%; max-width: 36rem; height: auto; margin: 0.25rem 0; }
.chart text { fill: var(--text); font-size: 14px; font-variant-numeric: tabular-nums; }
.legend { font-size: 0.875rem; }
.key { width: 28px; height: 10px; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.zero { stroke: var(--soft); stroke-width: 1.5; fill: none; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); }
.line, .key-line { stroke: var(--c); stroke-width: 2; fill: none; stroke-linejoin: round; }
.d1 { stroke-dasharray: 7 3; } .d2 { stroke-dasharray: 2 3; }
.ideal { --c: var(--soft); stroke-dasharray: 5 4; }
.key-line.wide { stroke-width: 9; }
.band { fill: var(--c); opacity: 0.2; stroke: none; }
.point { fill: var(--c); stroke: var(--panel); stroke-width: 1; }
.bar { fill: var(--c); stroke: var(--panel); stroke-width: 0.75; }
.interval { stroke: var(--c); stroke-width: 2; fill: none; }
.scroll { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; font-size: 0.875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.25rem 0; overflow-wrap: anywhere; }
th, td { padding: 0.2rem 0.6rem; border-bottom: 1px solid var(--rule); text-align: left; vertical-align: top; }
td { max-width: 40rem; overflow-wrap: anywhere; }
tbody th { font-weight: 400; overflow-wrap: anywhere; min-width: 6rem; }
th.number, td.number { text-align: right; white-space: nowrap; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; color: var(--soft); }
.problems { border-left: 4px solid var(--c1); padding: 0.25rem 1rem; background: var(--panel); }
@media print {
  @page { margin: 12mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  figure, tr, .problems { break-inside: avoid; }
  .scroll { overflow: visible; }
  table { font-size: 7.5pt; }
  nav, details:not([open]), details > summary { display: none; }
  .chart, .key { print-color-adjust: exact; }
}
)css";

}  // namespace bench

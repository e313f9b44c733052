"""The style sheet of a report: one column, light or dark as the reader's system is, black on white on paper."""

STYLE = """
:root { color-scheme: light dark; --paper: #ffffff; --ink: #1c2430; --faint: #6b7685; --rule: #d5dae1; --soft: #f3f5f8;
  --first: #1f5fa8; --second: #b8621b; --warn: #a3123f; --good: #12703c; --secret: #fdf1e3; --secret-edge: #b8621b; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181f; --ink: #e6e9ee; --faint: #9aa5b4; --rule: #343c48; --soft: #1d232c;
  --first: #7ab3f0; --second: #f0a25e; --warn: #ff7d9c; --good: #6fd39a; --secret: #2b2115; --secret-edge: #f0a25e; } }
@media print { :root { color-scheme: light; --paper: #ffffff; --ink: #000000; --faint: #4d5560; --rule: #b9c0ca; --soft: #f3f5f8;
  --first: #1f5fa8; --second: #b8621b; --warn: #a3123f; --good: #12703c; --secret: #fdf1e3; --secret-edge: #b8621b; } }
@page { size: A4; margin: 16mm 15mm; }
* { box-sizing: border-box; }
html { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
  background: var(--paper); color: var(--ink); overflow-wrap: anywhere; }
body { margin: 0 auto; max-width: 56rem; padding: 1.2rem clamp(1rem, 4vw, 2.5rem) 3rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .6rem 0 .3rem; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .6rem; padding-top: .7rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
p, ul { margin: .5rem 0; max-width: 44rem; }
.lead { color: var(--faint); }
.note { color: var(--faint); font-size: .88rem; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
a { color: var(--first); }
:focus-visible { outline: 3px solid var(--first); outline-offset: 2px; }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; max-width: none; }
blockquote { margin: .8rem 0; padding: .7rem 1.1rem; border-left: .3rem solid var(--first); background: var(--soft); }
blockquote p { font-size: 1.06rem; max-width: none; }
.state { display: inline-block; padding: .15rem .7rem; border: 2px solid currentColor; border-radius: 1rem; font-weight: 600; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--warn); font-weight: 600; }
.secret { background: var(--secret); border: 1px solid var(--secret-edge); border-left-width: .3rem; padding: .6rem 1rem; margin: .9rem 0; }
.secret p { margin: .2rem 0; max-width: none; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { text-align: left; vertical-align: top; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--rule); font-weight: 400; }
th, td { overflow-wrap: break-word; }
tbody th { min-width: 7.5rem; }
td { min-width: 4.5rem; }
td:not(.number) { min-width: 7rem; }
td:last-child:not(.number) { min-width: 13rem; }
thead th { color: var(--faint); font-size: .84rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
td.number { white-space: nowrap; }
figure { margin: 1rem 0; max-width: 35rem; }
figcaption { font-size: .92rem; margin-top: .3rem; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
details { margin-top: .4rem; font-size: .95rem; }
summary { cursor: pointer; color: var(--first); }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem; padding: 0; margin: 1.1rem 0; }
.facts div { background: var(--soft); padding: .6rem .9rem; }
.facts dt { color: var(--faint); font-size: .85rem; }
.facts dd { margin: 0; font-size: 1.15rem; font-weight: 600; }
@media print {
  html { font-size: 10.5pt; }
  body { max-width: none; padding: 0; }
  nav, .skip, summary { display: none; }
  h2, h3, caption { break-after: avoid; }
  figure, blockquote, .secret, tr, .facts div { break-inside: avoid; }
  figure { max-width: 14cm; }
  .wide { overflow: visible; }
  th, td { padding-right: .5rem; }
}
"""

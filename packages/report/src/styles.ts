import { shadeRules } from "./charts/heat-map-chart.ts";
import { histogramRules } from "./charts/histogram-chart.ts";
import { kindRules, tokenRules } from "./tokens.ts";

/** CSS rules for a timeline, its legend and its tooltips. */
const timelineRules = `.legend{display:flex;flex-wrap:wrap;gap:2px 16px;margin:6px 0 0;padding:0;list-style:none;font-size:var(--small)}
.legend i{display:inline-block;width:11px;height:11px;border-radius:2px;background:var(--fill);margin-right:6px;border:1px solid var(--edge);vertical-align:-1px}
figure{margin:0;overflow-x:clip}
.chart{display:block;overflow:visible;font-size:12px}
.chart text{fill:var(--text)}
.chart rect,.chart circle{fill:var(--fill)}
.chart .mark text,.chart .cell text{fill:var(--ink)}
.chart .mark>rect,.chart .cell>rect{stroke:var(--page);stroke-width:1px}
.chart .ticks line{stroke:var(--line)}
.chart .ticks text,.chart .axis-name,.chart .track-name{fill:var(--quiet)}
.timeline{margin:4px 0 0 100px;width:calc(100% - 116px);touch-action:pan-y}
.timeline .group-name{font-weight:600;transform:translateX(-100px)}
.timeline .ground{fill:var(--panel)}
.timeline path{stroke:var(--fill)}
.timeline .hatched{fill:url(#hatch);pointer-events:none}
.timeline .predicted-name{font-size:10.5px}
.timeline .hatch{fill:var(--panel);opacity:.75}
.timeline .chosen{fill:none;stroke:var(--text);stroke-width:2px}
.timeline[tabindex]{cursor:grab}
.timeline[tabindex]:active{cursor:grabbing}
.tip{position:fixed;z-index:9;max-width:min(480px,92vw);background:var(--text);color:var(--page);padding:5px 9px;border-radius:6px;font-size:12.5px;pointer-events:none;overflow-wrap:anywhere}`;

/** CSS rules for a timeline on a page that has its own styles. */
export const timelineStyles: string = `${kindRules}\n${timelineRules}\n${histogramRules}`;

/**
 * CSS rules for the page and its charts, based on the design tokens. Axis labels are outside the SVG of a chart, in its
 * margin.
 */
export const styles: string = `${tokenRules}
${timelineRules}
${histogramRules}
.histograms{list-style:none;margin:0;padding:0;display:grid;grid-template-columns:repeat(auto-fill,minmax(min(520px,100%),1fr));gap:10px}
.histograms li{border:1px solid var(--line);border-radius:var(--radius);padding:8px 12px;min-width:0}
.histograms h3{font-size:13px;margin:0}
.histograms .pair{display:grid;grid-template-columns:1fr 1fr;gap:12px}
*{box-sizing:border-box}
[hidden]{display:none!important}
html{background:var(--page);color:var(--text);font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
body{max-width:1360px;margin:0 auto;padding:14px var(--gap) 60px;overflow-wrap:anywhere}
h1{font-size:20px;margin:0;overflow-wrap:anywhere}
h2{font-size:15px;margin:0 0 6px}
p{margin:0 0 6px}
section{margin-top:22px}
.quiet{color:var(--quiet);font-size:var(--small)}
text.quiet{fill:var(--quiet)}
code{font:12.5px ui-monospace,"Cascadia Mono",Menlo,Consolas,monospace;background:var(--panel);border:1px solid var(--line);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
button,select,input{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--edge);border-radius:6px;padding:3px 9px;min-height:28px}
button{cursor:pointer}
button:hover{border-color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:1px}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:2px 14px}
header p{margin:0}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:10px;margin:12px 0 0}
.tile{background:var(--panel);border:1px solid var(--line);border-radius:var(--radius);padding:8px 12px}
.tile.k-exposed{border-left:5px solid var(--fill)}
.tile dt{color:var(--quiet);font-size:var(--small)}
.tile dd{margin:0}
.tile strong{display:block;font-size:22px;line-height:1.25;font-variant-numeric:tabular-nums}
.tile span{color:var(--quiet);font-size:var(--small)}
.columns{display:grid;grid-template-columns:1fr 1fr;gap:0 28px}
.columns>section{min-width:0}
.slowest{list-style:none;margin:0;padding:0}
.slowest li{display:grid;grid-template-columns:1fr auto;gap:1px 12px;margin-bottom:9px}
.slowest .operator{overflow-wrap:anywhere}
.slowest .time{white-space:nowrap;font-variant-numeric:tabular-nums}
.slowest .bar{grid-column:1/-1;background:var(--panel);border-radius:3px}
.slowest i{display:block;height:9px;border-radius:3px;background:var(--fill)}
.advice{margin:0;padding:0;list-style:none}
.advice li{border-left:3px solid var(--accent);padding:0 0 0 10px;margin-bottom:12px}
.advice p{margin:0 0 2px}
.advice p:first-child{font-weight:600}
.gain{color:var(--accent)}
.cell>rect{width:100%;height:100%}
.stacked-bar{border-radius:4px}
.toolbar{display:flex;flex-wrap:wrap;align-items:center;gap:6px;margin:4px 0 8px}
.toolbar button,.trail button{font-size:13px}
.toolbar output{font-size:var(--small);color:var(--quiet);min-height:1.4em}
.flame .cell{cursor:pointer}
.flame .cell:hover>rect,.flame .cell:focus>rect{stroke:var(--text);stroke-width:2px}
.flame .cell:focus{outline:none}
.flame .around{opacity:.8}
.chart .narrow text{display:none}
.trail{min-height:32px;margin-bottom:4px;color:var(--quiet)}
.trail button[aria-current]{font-weight:600;border-color:transparent}
.choice{border:0;margin:0 0 6px;padding:0;display:flex;gap:14px;font-size:var(--small)}
.choice legend{float:left;margin-right:14px;padding:0}
.choice label{display:flex;align-items:center;gap:5px}
.choice input{min-height:0}
section:has(input[value=separate]:checked) .combined,section:has(input[value=combined]:checked) .separate{display:none}
.roofline{margin:24px 12px 44px 56px;width:calc(100% - 68px)}
.roofline .roof line{stroke:var(--text);stroke-width:2px}
.roofline .roof-name{font-weight:600}
.roofline circle{fill-opacity:.85;stroke:var(--page);stroke-width:1px}
.roofline circle:hover{fill-opacity:1;stroke:var(--text);stroke-width:2px}
.memory{margin:10px 12px 8px 72px;width:calc(100% - 84px)}
.memory .lifetime{fill:var(--edge)}
.memory .live{fill:#56b4e9;fill-opacity:.65}
.memory .resident{fill:#b4bac4;fill-opacity:.65}
.memory .peak line{stroke:#d55e00;stroke-width:1.5px;stroke-dasharray:4 3}
.memory .peak text{font-weight:600;paint-order:stroke;stroke:var(--page);stroke-width:4px}
.heat-map{margin:8px 12px 8px 72px;width:calc(100% - 84px)}
.heat-map .ground{fill:var(--panel)}
${shadeRules}
.lines{margin:8px 12px 8px 56px;width:calc(100% - 68px)}
.lines .line{fill:none;stroke:var(--fill);stroke-width:1.5px;vector-effect:non-scaling-stroke}
.scroll{max-height:70vh;overflow:auto;border:1px solid var(--line);border-radius:var(--radius)}
table{border-collapse:separate;border-spacing:0;width:100%;font-size:13px;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:6px 10px;color:var(--quiet);font-size:var(--small)}
th{position:sticky;top:0;background:var(--panel);border-bottom:1px solid var(--edge);text-align:left;padding:0;z-index:1}
th button{position:relative;width:100%;padding:3px 9px;border:0;border-radius:0;background:none;text-align:left;font-weight:600;white-space:nowrap}
th.number button,td.n{text-align:right}
th button::after{position:absolute;right:0;font-size:8px;line-height:1.4}
th[aria-sort=ascending] button::after{content:"▲"}
th[aria-sort=descending] button::after{content:"▼"}
td{overflow-wrap:normal;padding:3px 9px;border-bottom:1px solid var(--line);white-space:nowrap}
tbody tr:hover{background:var(--panel)}
.filters{display:flex;flex-wrap:wrap;gap:8px 14px;align-items:center;margin-bottom:8px}
html:not(.js) .scripted{display:none}
@media (max-width:720px){.tiles{grid-template-columns:1fr 1fr}.columns{grid-template-columns:1fr}.tile strong{font-size:18px}.slowest li{grid-template-columns:1fr}td:first-child,td:nth-child(2){white-space:normal;overflow-wrap:anywhere;min-width:7em;max-width:9em}}
@media (prefers-reduced-motion:no-preference){.tip{transition:opacity .1s}}
@media print{body{max-width:none;padding:0;font-size:11px}.scroll{max-height:none;overflow:visible;border:0}.scripted,.trail,.choice,.tip{display:none!important}section{break-inside:avoid}section:has(table){break-inside:auto}tr{break-inside:avoid}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}`;

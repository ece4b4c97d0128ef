import { clientScript } from "./client/client-script.ts";
import { escapeText } from "./html.ts";
import type { ProfileReport } from "./profile-report.ts";
import { flameSection, memorySection, rooflineSection, timelineSection } from "./sections/charts.ts";
import { headSection } from "./sections/head.ts";
import { collectiveSection, operatorSection } from "./sections/tables.ts";
import { styles } from "./styles.ts";

/**
 * Make a report one HTML file that needs nothing else: no network, no fonts, no other files. Charts and tables read
 * without a script, too.
 *
 * All text of the report is escaped, and the page forbids itself every request (Content Security Policy).
 *
 * Cost: linear in rows and spans; some 200 kB for a step of 300 nodes on four ranks.
 */
export const reportPage = (report: ProfileReport): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(report.job)}: profile</title>
<style>
${styles}
</style>
<script>document.documentElement.className="js"</script>
</head>
<body>
${[headSection, timelineSection, flameSection, rooflineSection, memorySection, operatorSection, collectiveSection].map((section) => section(report)).join("\n")}
<script>
${clientScript()}
</script>
</body>
</html>
`;

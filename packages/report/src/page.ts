import { escapeText } from "./html.ts";
import { styles } from "./styles.ts";

/**
 * Returns a self-contained HTML file, whose Content Security Policy forbids all network requests.
 *
 * @param body Parts of the body, as escaped HTML.
 */
export const pageOf = (title: string, body: readonly string[]): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeText(title)}</title>
<style>
${styles}
</style>
<script>document.documentElement.className="js"</script>
</head>
<body>
${body.join("\n")}
</body>
</html>
`;

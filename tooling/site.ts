import { relative } from "node:path";
import { repository } from "./repository.ts";
import { buildSite, siteFolder } from "./site/build.ts";
import { brokenLinks } from "./site/links.ts";

// Implements `pnpm site`: builds the site, and prints its faults and the path of its first page.
const { warnings, undocumented } = await buildSite();
const faults = [
  ...warnings,
  ...undocumented.map((name) => `${name} is exported without a doc comment: write one above it`),
  ...brokenLinks(siteFolder).map((link) => `broken link of the site: ${link}`),
];
for (const fault of faults) console.error(fault);
console.log(`open ${relative(repository, siteFolder)}/index.html`);
process.exitCode = faults.length === 0 ? 0 : 1;

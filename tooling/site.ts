import { relative } from "node:path";
import { repository } from "./repository.ts";
import { buildSite, siteFolder } from "./site/build.ts";
import { brokenLinks } from "./site/links.ts";

// `pnpm site`: make the site, say what is wrong with it, and what to open.
const { warnings, undocumented } = await buildSite();
const faults = [
  ...warnings,
  ...undocumented.map((name) => `${name} is exported, and no doc comment says what it is: write one above it`),
  ...brokenLinks(siteFolder).map((link) => `a link of the site leads nowhere: ${link}`),
];
for (const fault of faults) console.error(fault);
console.log(`open ${relative(repository, siteFolder)}/index.html`);
process.exitCode = faults.length === 0 ? 0 : 1;

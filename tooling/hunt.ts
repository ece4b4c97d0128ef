import { randomInt } from "node:crypto";
import { formatFailure, huntRound, lawFiles, parseHuntArguments } from "./law-hunt.ts";

// Usage: pnpm test:hunt [parts of paths] [--times N]
const parsed = parseHuntArguments(process.argv.slice(2));
if (typeof parsed === "string") {
  console.error(parsed);
  process.exit(2);
}
const { times, filters } = parsed;
const files = lawFiles(filters);
if (files.length === 0) {
  console.error(`no file with laws has ${filters.join(" or ")} in its path; leave the paths out for all laws`);
  process.exit(2);
}
for (let round = 1; round <= times; round++) {
  const seed = randomInt(2 ** 31);
  console.log(`round ${round} of ${times}, ${files.length} files: seed ${seed}`);
  const failures = await huntRound(files, seed);
  for (const failure of failures) console.log(formatFailure(failure, seed));
  if (failures.length > 0) process.exit(1);
}
console.log(`all laws held ${times} times`);

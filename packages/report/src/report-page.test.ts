import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyReport } from "../test/any-report.ts";
import { sampleReport } from "../test/sample-report.ts";
import { flameOfOperators } from "./flame-of-operators.ts";
import { rankTracks } from "./rank-tracks.ts";
import { stepSegments } from "./phases.ts";
import { reportPage } from "./report-page.ts";
import { selectRanks } from "./sections/charts.ts";

const close = 6;

/** Returns the matches of a pattern, so that a failed assertion does not print the whole page. */
const matches = (page: string, pattern: RegExp): string[] =>
  [...page.matchAll(pattern)].map(([text]) => text.slice(0, 100));

test("a page is one file: no requests, and small for a step of 300 nodes on four ranks", () => {
  const report = sampleReport({ blocks: 11, ranks: 4, buckets: 8 });
  expect(report.memory!.liveBytes.length).toBeGreaterThan(300);
  const page = reportPage(report);
  expect(Buffer.byteLength(page)).toBeLessThan(320_000);
  expect(page.includes("default-src 'none'")).toBe(true);
  expect(
    matches(page.replaceAll("http://www.w3.org/2000/svg", ""), /https?:|\bsrc=|\bhref=|@import|url\((?!#)/g),
  ).toEqual([]);
});

test("no text of a report becomes a tag, an attribute or a script", () => {
  const tagsOf = (page: string): number => page.split(/<[a-zA-Z/!]/).length;
  const evil = `</script><img src=x onerror=alert(1)>" onfocus='alert(2)' & --> \u0000`;
  const replaced = <T>(value: T, text: (old: string) => string): T =>
    JSON.parse(JSON.stringify(value), (_, old: unknown) => (typeof old === "string" ? text(old) : old)) as T;
  // Names that have a meaning in HTML are not replaced.
  const fixed = new Set<string>([
    "skein-profile",
    "forward",
    "backward",
    "update",
    "communication",
    "compute",
    "collectives",
    "waiting",
    "between",
    "data",
    "host",
    "flops",
    "bytes",
  ]);
  const harmless = replaced(sampleReport(), (old) =>
    fixed.has(old) ? old : `${evil.replaceAll(/[<>"'&]/g, "y")}${old}`,
  );
  const hostile = replaced(sampleReport(), (old) => (fixed.has(old) ? old : `${evil}${old}`));
  const page = reportPage(hostile);
  expect(matches(page, /<img|\0|["'] onfocus=/g)).toEqual([]);
  expect(tagsOf(page)).toBe(tagsOf(reportPage(harmless)));
  expect(page.split("</script>").length - 1).toBe(2);
  expect(page.split("&lt;/script&gt;&lt;img").length).toBeGreaterThan(100);
});

test("any report makes a page without invalid numbers", () => {
  fc.assert(
    fc.property(anyReport, (report) => {
      const page = reportPage(report);
      // Names may contain any text, but attributes with coordinates may not.
      expect(
        matches(page, / (?:x|y|x1|x2|y1|y2|cx|cy|r|width|height|d|viewBox)="[^"]*(?:NaN|Infinity|undefined)/g),
      ).toEqual([]);
      expect(matches(page, />(?:NaN|Infinity|undefined)/g)).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

describe("figures of a report's charts", () => {
  test("segments of a step add up to the step", () => {
    const report = sampleReport();
    const segments = stepSegments(report);
    expect(segments.map(({ kind }) => kind)).toEqual([
      "forward",
      "backward",
      "update",
      "communication",
      "exposed",
      "other",
    ]);
    expect(segments.reduce((sum, { seconds }) => sum + seconds, 0)).toBeCloseTo(report.step.median, 9);
    const [row] = report.operators;
    const odd = stepSegments({ ...report, operators: [{ ...row!, phase: "other", share: 0.25 }], outside: [] });
    expect(odd.find(({ name }) => name === "operators without a phase")!.seconds).toBeCloseTo(
      0.25 * report.step.median,
      9,
    );
  });

  test.each(["separate", "combined"] as const)(
    "the flame chart with phases %s has all seconds, and no part more than its whole",
    (layout) => {
      const report = sampleReport();
      const root = flameOfOperators(report, layout);
      expect(root.seconds).toBeCloseTo(report.step.median, 9);
      const check = ({ seconds, children }: typeof root): void => {
        if (children.length > 0)
          expect(children.reduce((sum, child) => sum + child.seconds, 0)).toBeCloseTo(seconds, close);
        for (const child of children) check(child);
      };
      check(root);
      const path = layout === "separate" ? ["forward", "head", "matmul"] : ["head", "matmul", "forward"];
      const found = path.reduce<typeof root | undefined>(
        (at, name) => at?.children.find((child) => child.name === name),
        root,
      );
      expect(found?.seconds).toBe(
        report.operators.find(
          ({ operator, scope, phase }) => operator === "matmul" && scope === "head" && phase === "forward",
        )!.share * report.step.median,
      );
      const [exposed, outside] = ["waiting for communication", "outside of kernels"].map((name) =>
        root.children.find((child) => child.name === name),
      );
      expect([exposed!.kind, outside!.kind]).toEqual(["exposed", "other"]);
      expect(outside!.children.map(({ name }) => name)).toEqual(["between kernels"]);
    },
  );

  test("an operator is separate from a scope of the same name", () => {
    const report = sampleReport();
    const one = { ...report.operators[0]!, calls: 1, phase: "forward" as const, share: 0.5 };
    const operators = [
      { ...one, operator: "attention", scope: "" },
      { ...one, operator: "matmul", scope: "attention" },
    ];
    const root = flameOfOperators({ ...report, operators, outside: [] }, "separate");
    expect(root.children[0]!.children.map(({ children }) => children.length).sort()).toEqual([0, 1]);
  });

  test("tracks of a rank: kernels by their phase, collectives, waiting, each next to its prediction", () => {
    const { timeline, predicted } = sampleReport();
    const tracks = rankTracks(timeline, predicted);
    expect(tracks.map(({ group, name }) => `${group}: ${name}`)).toEqual(
      ["rank 0", "rank 1"].flatMap((rank) =>
        ["compute", "collectives", "waiting"].map((name) => `${rank}, host-a: ${name}`),
      ),
    );
    const kindsOf = (name: string): string[] => [
      ...new Set(tracks[0]!.spans.filter(({ label }) => label.startsWith(name)).map(({ kind }) => kind)),
    ];
    expect([
      kindsOf("softmax-cross-entropy head/backward"),
      kindsOf("softmax-cross-entropy head,"),
      kindsOf("fused update"),
      kindsOf("concat"),
    ]).toEqual([["backward"], ["forward"], ["update"], ["communication"]]);
    expect(tracks.every(({ predicted: prediction }) => prediction !== undefined)).toBe(true);
    expect(tracks[1]!.spans[0]).toMatchObject({ kind: "communication", label: "all-reduce bucket-0, ring, 171 KiB" });
  });

  test("of many ranks, those that wait least and most are shown", () => {
    const ranks = Array.from({ length: 20 }, (_, rank) => ({
      rank,
      spans: [{ name: "wait", track: "waiting" as const, startSeconds: 0, endSeconds: (7 * rank) % 20 }],
    }));
    const waits = selectRanks(ranks).map(({ spans }) => spans[0]!.endSeconds);
    expect(waits.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 16, 17, 18, 19]);
  });
});

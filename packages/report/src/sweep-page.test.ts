import fc from "fast-check";
import { expect, test } from "vitest";
import { sweepPage, type SweepReport } from "./sweep-page.ts";

test("the page of a sweep has no invalid coordinate, and no text that becomes a tag", () => {
  const number = fc.oneof(fc.double(), fc.constantFrom(0, -1, 1e300, Number.NaN, Infinity));
  const text = fc.constantFrom("a", `</script><img src=x onerror=alert(1)>" x='y`, "");
  const report: fc.Arbitrary<SweepReport> = fc.record({
    name: text,
    about: text,
    keys: fc.tuple(fc.record({ key: text, isLog: fc.boolean() }), fc.record({ key: text, isLog: fc.boolean() })),
    trials: fc.array(
      fc.record({
        trial: fc.nat(),
        values: fc.tuple(fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), text), text),
        loss: fc.option(number, { nil: undefined }),
        seconds: fc.option(number, { nil: undefined }),
        state: text,
      }),
      { maxLength: 6 },
    ),
    command: fc.option(text, { nil: undefined }),
  });
  fc.assert(
    fc.property(report, (one) => {
      const page = sweepPage(one);
      const body = page.slice(page.indexOf("<body>"), page.lastIndexOf("<script>"));
      expect(body).not.toMatch(/NaN|Infinity|undefined/);
      expect(body).not.toMatch(/<img/);
      expect(body.split("<svg").length).toBe(body.split("</svg>").length);
    }),
    { numRuns: 100 },
  );
});

test("each numeric key has a plot, on a log scale if its values are sampled that way", () => {
  const page = sweepPage({
    name: "x",
    about: "",
    keys: [
      { key: "rate", isLog: true },
      { key: "kind", isLog: false },
    ],
    trials: [0.01, 0.1].map((rate, i) => ({
      trial: i + 1,
      values: [rate, "sgd"],
      loss: rate,
      seconds: 1,
      state: "finished",
    })),
    command: "skein-train run job.yaml --set rate=0.01",
  });
  expect(page).toContain("Held-out loss by log₁₀ rate</h2>");
  expect(page).not.toContain("Held-out loss by kind");
  expect(page).toContain("<code>skein-train run job.yaml --set rate=0.01</code>");
});

import { ArgumentError } from "@skein/tensor-core";

/** Throws ArgumentError if a list of loads is empty, or a load is negative or not finite. */
export const checkLoads = (planner: string, loads: readonly number[], owner: "expert" | "rank" = "expert"): void => {
  if (loads.length === 0) throw new ArgumentError(`${planner}: no loads were given; give one per ${owner}`);
  for (const [i, load] of loads.entries())
    if (!(load >= 0 && Number.isFinite(load)))
      throw new ArgumentError(
        `${planner}: the load of ${owner} ${i} is ${load}; loads must be finite and not negative`,
      );
};

/** Throws ArgumentError unless `count` is divisible by `over`. */
export const checkDivides = (
  planner: string,
  [count, items]: [number, string],
  [over, others]: [number, string],
): void => {
  if (!Number.isInteger(count) || count < 1 || !Number.isInteger(over) || over < 1 || count % over !== 0)
    throw new ArgumentError(
      `${planner}: ${count} ${items} are not divisible by ${over} ${others}; give a multiple of ${over}`,
    );
};

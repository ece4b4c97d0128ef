import type { JSX } from "preact";
import { differingOptions } from "./differing-options.ts";
import { colourIndex, shown } from "./store.ts";

/** List of the job options in which the shown runs differ. */
export const Differences = (): JSX.Element | null => {
  const runs = shown.value;
  if (runs.length < 2) return null;
  const rows = differingOptions(runs);
  return (
    <section aria-labelledby="differences-heading">
      <h2 id="differences-heading">Differences between their jobs</h2>
      {rows.length === 0 ? (
        <p class="quiet">The jobs of these runs are the same.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="table of differences">
          <table>
            <thead>
              <tr>
                <th scope="col">option</th>
                {runs.map(({ id }) => (
                  <th scope="col" key={id} class={`run-${colourIndex(id)}`}>
                    <i aria-hidden="true" />
                    {id}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map(({ key, values }) => (
                <tr key={key}>
                  <th scope="row">{key}</th>
                  {values.map((value, i) => (
                    <td key={runs[i]!.id}>{value ?? <span class="quiet">not given</span>}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
};

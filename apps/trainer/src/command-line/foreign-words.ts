/** Command-line options of other training programs, each with its skein-train equivalent. */
const options: Readonly<Record<string, string>> = {
  "--batch": "--set batch=32",
  "--batch-size": "--set batch=32",
  "--device": "--set backend=webgpu",
  "--epoch": "--set epochs=3",
  "--epochs": "--set epochs=3",
  "--gpus": "--ranks 2",
  "--learning-rate": "--set learningRate.peak=0.1",
  "--lr": "--set learningRate.peak=0.1",
  "--max-steps": "--steps 100",
  "--num-gpus": "--ranks 2",
  "--nproc-per-node": "--ranks 2",
  "--optimizer": "--set optimizer.kind=adam",
  "--output-dir": "--output runs/mine",
  "--resume": "the command resume runs/mine, or --resume-if-possible",
  "--seed": "--set seed=1",
  "--weight-decay": "--set optimizer.weightDecay=0.01",
};

const commands: Readonly<Record<string, string>> = { eval: "evaluate", fit: "run", test: "evaluate", train: "run" };

/**
 * Suggests the skein-train equivalent of an option or command that skein-train does not know, but that other training
 * programs have.
 *
 * @param fault error message about the option or command, such as `error: unknown option '--lr'`.
 * @returns a sentence without a final period; undefined if no other program has the option or command.
 */
export const foreignWord = (fault: string): string | undefined => {
  // Option values follow "=". Spellings with a single dash, or with underscores instead of dashes, name the same
  // option.
  const option = /unknown option '(-[^'=]+)/.exec(fault)?.[1]?.replace(/^-+/, "--").replaceAll("_", "-").toLowerCase();
  if (option !== undefined) {
    const known = Object.hasOwn(options, option) ? options[option] : undefined;
    return known && `use ${known}`;
  }
  const command = /unknown command '([^']+)'/.exec(fault)?.[1];
  if (command === undefined) return undefined;
  if (/\.(ya?ml|json)$/i.test(command)) return `to train a job file: skein-train run ${command}`;
  const known = Object.hasOwn(commands, command) ? commands[command] : undefined;
  return known && `use skein-train ${known}`;
};

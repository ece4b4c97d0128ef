const maxColumns = 72;

/**
 * Base forms of verbs that end like a third person, a past tense or a participle, such as "process", "feed" or "bring".
 */
const baseForms =
  /^(?:access|address|bring|compress|discuss|embed|exceed|express|feed|focus|need|pass|press|process|proceed|seed|shed|speed|string|suppress|toss)$/;

/**
 * Returns the problem with a commit subject. Undefined if the subject is valid. A subject must name an area, and
 * describe the change in the imperative, such as "collectives: resume links after a cut".
 */
export const subjectFault = (subject: string): string | undefined => {
  if (subject.length > maxColumns) return `has ${subject.length} characters; use at most ${maxColumns}`;
  const [, verb] = /^[a-z0-9][a-z0-9 ,-]*: ([^ ]+) /.exec(subject) ?? [];
  if (verb === undefined) return 'names no area; begin with one, such as "trainer: "';
  if (!/^[a-z]/.test(verb)) return `continues with "${verb}"; write a verb in lower case after the area`;
  if (/(?:[^s]s|ed|ing)$/.test(verb) && !baseForms.test(verb))
    return `continues with "${verb}"; use the imperative, such as "add" or "reject"`;
  return subject.endsWith(".") ? "ends with a full stop; leave it out" : undefined;
};

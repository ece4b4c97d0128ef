import { rmSync } from "node:fs";
import { join, relative } from "node:path";
import {
  Application,
  Converter,
  type DeclarationReflection,
  DocumentReflection,
  KindRouter,
  LogLevel,
  Logger,
  MinimalSourceFile,
  normalizePath,
  type ProjectReflection,
  type Reflection,
  ReflectionKind,
  type TypeDocOptions,
} from "typedoc";
import { repository } from "../repository.ts";
import { nameOptions, takeCostAndSource } from "./comment-parts.ts";
import { type Door, publishedDoors } from "./doors.ts";
import { handWrittenPages, landingPage, pageText } from "./pages.ts";

/** Where the site is written: a folder to open, to copy to a web server, or to throw away. */
export const siteFolder: string = join(repository, "dist/site");

/** What the site's build found to complain about. */
export interface SiteBuild {
  /** Links that lead nowhere, tags without effect, exports that a signature needs and no door has … */
  readonly warnings: readonly string[];
  /** Exports that nothing is said of, neither of them nor of each of their members: `@skein/data/node.loadText`. */
  readonly undocumented: readonly string[];
}

/** Keeps what TypeDoc complains about, to be told together. */
class Complaints extends Logger {
  readonly lines: string[] = [];
  override log(message: string, level: LogLevel): void {
    super.log(message, level);
    if (level >= LogLevel.Warn) this.lines.push(message);
  }
}

/** Pages that are written by hand have the addresses of their files: docs/guides/x.md is guides/x.html. */
class AddressesOfFiles extends KindRouter {
  override getIdealBaseName(reflection: Reflection): string {
    const file = reflection.isDocument() ? reflection.project.files.getReflectionPath(reflection) : undefined;
    if (file === undefined) return super.getIdealBaseName(reflection);
    const path = relative(repository, file).replace(/\.md$/, "");
    return path.startsWith("docs/")
      ? path.replace("docs/", "").replace(/README$/, "overview")
      : path.replace(/\/README$/, "");
  }
}

/** For pages that have one by themselves. */
const withoutTitle = (text: string): string => text.replace(/^# .*\n+/, "");

/** Give each module the name that it is imported by, and its package's README. */
const nameModules = (app: Application, project: ProjectReflection, doors: readonly Door[]): void => {
  const byFile = new Map(doors.map((door) => [normalizePath(join(repository, door.file)), door]));
  for (const module of project.getChildrenByKind(ReflectionKind.Module)) {
    const door = byFile.get(normalizePath(module.sources?.[0]?.fullFileName ?? ""));
    if (door === undefined) throw new Error(`no door leads to the module ${module.name}`);
    module.name = door.name;
    const readme = join(door.folder, "README.md");
    if (!door.folder.startsWith("packages/") || module.readme !== undefined) continue;
    // Where a package has several doors, its README stands on the first one's page.
    if (doors.find(({ folder }) => folder === door.folder) !== door) continue;
    const path = normalizePath(join(repository, readme));
    project.files.registerReflectionPath(path, module);
    module.readme = app.converter.parseRawComment(
      new MinimalSourceFile(withoutTitle(pageText(readme)), path),
      project.files,
    ).content;
  }
};

const addPages = (app: Application, project: ProjectReflection): void => {
  for (const { path, title, group } of handWrittenPages()) {
    const file = normalizePath(join(repository, path));
    const { content } = app.converter.parseRawComment(new MinimalSourceFile(pageText(path), file), project.files);
    const page = new DocumentReflection(title, project, content, { group });
    project.addChild(page);
    project.registerReflection(page, undefined, file);
    app.converter.trigger(Converter.EVENT_CREATE_DOCUMENT, undefined as never, page);
  }
  const file = normalizePath(join(repository, landingPage));
  project.files.registerReflectionPath(file, project);
  project.readme = app.converter.parseRawComment(
    new MinimalSourceFile(withoutTitle(pageText(landingPage)), file),
    project.files,
  ).content;
};

const speaks = (reflection: DeclarationReflection): boolean =>
  reflection.hasComment() || reflection.getAllSignatures().some((signature) => signature.hasComment());

/** Whether it has a doc comment, or, for a type such as a function's options, each of its members has. */
const says = (reflection: DeclarationReflection): boolean => {
  if (speaks(reflection)) return true;
  const declaration = reflection.type?.type === "reflection" ? reflection.type.declaration : reflection;
  const members = declaration.children ?? [];
  return members.length > 0 && members.every((member) => member.isReference() || speaks(member));
};

const exported =
  ReflectionKind.Class |
  ReflectionKind.Function |
  ReflectionKind.Interface |
  ReflectionKind.TypeAlias |
  ReflectionKind.Variable;

const withoutComment = (project: ProjectReflection): string[] =>
  project
    .getReflectionsByKind(exported)
    .filter((reflection) => reflection.isDeclaration() && reflection.parent?.kind === ReflectionKind.Module)
    .filter((reflection) => !says(reflection as DeclarationReflection))
    .map((reflection) => reflection.getFullName())
    .toSorted();

/**
 * Make the site: the reference of all that packages export, from the sources' doc comments, and all pages that are
 * written by hand. Types are taken as they are; `tsc` checks them.
 *
 * @throws Error where TypeDoc cannot read the sources at all.
 */
export const buildSite = async (out: string = siteFolder): Promise<SiteBuild> => {
  const doors = publishedDoors();
  const logger = new Complaints();
  const app = await Application.bootstrap();
  app.renderer.defineRouter("files", AddressesOfFiles);
  const options: TypeDocOptions = {
    name: "Skein",
    entryPoints: doors.map(({ file }) => join(repository, file)),
    tsconfig: join(repository, "tsconfig.json"),
    basePath: repository,
    displayBasePath: repository,
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    readme: "none",
    router: "files",
    // Without git, so that a folder of sources builds the same pages.
    disableGit: true,
    gitRevision: "main",
    sourceLinkTemplate: "https://github.com/skein-train/skein/blob/{gitRevision}/{path}#L{line}",
    validation: { invalidLink: true, invalidPath: true, notDocumented: false, notExported: false },
    customCss: join(import.meta.dirname, "site.css"),
    favicon: join(import.meta.dirname, "favicon.svg"),
    navigation: { includeGroups: true, includeCategories: false, includeFolders: true },
    groupOrder: ["Guides", "Command line", "Modules", "Reading on", "Benchmarks", "*"],
    navigationLinks: { GitHub: "https://github.com/skein-train/skein" },
    searchInDocuments: true,
    sort: ["source-order"],
    logLevel: "Warn",
  };
  for (const [name, value] of Object.entries(options))
    app.options.setValue(name as keyof TypeDocOptions, value as never);
  app.logger = logger;
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, (context) => {
    nameModules(app, context.project, doors);
    addPages(app, context.project);
    for (const { comment } of Object.values(context.project.reflections)) if (comment) takeCostAndSource(comment);
  });
  // Not before: parameters without a name are how TypeDoc knows whose `@param` a doc comment means.
  app.converter.on(Converter.EVENT_RESOLVE_END, (context) => nameOptions(context.project));
  const project = await app.convert();
  if (project === undefined) throw new Error(`the site cannot be made:\n${logger.lines.join("\n")}`);
  app.validate(project);
  rmSync(out, { recursive: true, force: true });
  await app.generateDocs(project, out);
  return { warnings: logger.lines, undocumented: withoutComment(project) };
};

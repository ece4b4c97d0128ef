/** URL of the public repository. The `package.json` of each package contains it, and READMEs link to it. */
export const address = "https://github.com/skein-train/skein";

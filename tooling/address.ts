/** Where this repository is published. Packages say so in their `package.json`, and link here from their READMEs. */
export const address = "https://github.com/skein-train/skein";

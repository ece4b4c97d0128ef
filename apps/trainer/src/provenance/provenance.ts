export const provenanceFile = "provenance.json";

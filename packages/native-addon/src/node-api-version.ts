/** Version of Node-API; addons built for it load in every later Node. */
export const nodeApiVersion = 8;

/** Put in by the bundler. */
declare const __JAX_JS_VERSION__: string;

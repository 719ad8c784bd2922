"""The functions of `import alphazero as az`; the package `alphazero` imports each when it is first used."""

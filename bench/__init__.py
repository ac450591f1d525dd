"""What DESIGN section 15 promises in figures, measured side by side in one run and printed as tables of ratios."""

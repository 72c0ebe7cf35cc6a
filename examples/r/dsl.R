# From labels.csv of a run to design-based supervised learning (Egami et al. 2023), R package `dsl`.
#
#   Rscript examples/r/dsl.R runs/letters/labels.csv good year
#
# The arguments: the table, the label whose share is explained, and a numeric column that may explain it.
# Rows with gold must have been drawn at random. The machine's probabilities should come from other gold rows than
# those that correct it: keep some random gold rows away from pcs, and add them to the column `gold` afterwards.
# `pcs estimate` does all of this with one set of gold rows, and needs no R.

given <- commandArgs(trailingOnly = TRUE)
if (length(given) != 3) stop("give three arguments: labels.csv, a label, and a numeric column of the table")
rows <- read.csv(given[1], colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8")
label <- given[2]
column <- given[3]
prediction <- paste0("p_", label)
needed <- c("gold", prediction, column)
if (!all(needed %in% names(rows))) {
  stop("the table has no column ", paste(setdiff(needed, names(rows)), collapse = ", "), ": run pcs fit with gold first")
}

data <- data.frame(
  human = ifelse(is.na(rows$gold), NA, as.numeric(tolower(rows$gold) == tolower(label))),
  machine = as.numeric(rows[[prediction]]),
  explains = as.numeric(rows[[column]])
)
data <- data[!is.na(data$machine) & !is.na(data$explains), ]
labelled <- sum(!is.na(data$human))
cat(nrow(data), "rows,", labelled, "with a label of a person\n")
if (labelled < 20) stop("too few rows have gold: label more, at random")

if (!requireNamespace("dsl", quietly = TRUE)) {
  stop("the package dsl is missing: remotes::install_github('naoki-egami/dsl')")
}
found <- dsl::dsl(
  model = "logit", formula = human ~ explains, predicted_var = "human", prediction = "machine", data = data
)
print(summary(found))

# The same flowers in R: does petal length differ between the species, and by how much?
iris <- read.csv("data/iris.csv", stringsAsFactors = TRUE)
fit <- aov(petal_length ~ species, data = iris)
print(summary(fit))

write.csv(aggregate(. ~ species, data = iris, FUN = mean), "summary.csv", row.names = FALSE)

pdf("petals.pdf", width = 6, height = 4)
boxplot(petal_length ~ species, data = iris, ylab = "petal length (cm)")
invisible(dev.off())

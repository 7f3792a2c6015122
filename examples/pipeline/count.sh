#!/bin/sh
# How many flowers of each species have petals longer than 4.5 cm?
set -eu
tail -n +2 data/iris.csv |
	awk -F, '$3 > 4.5 { print $5 }' |
	sort | uniq -c | sort -rn |
	awk '{ print $2 "\t" $1 }' >counts.tsv
cat counts.tsv

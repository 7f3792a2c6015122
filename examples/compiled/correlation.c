/* The correlation of petal length and petal width, from the third and fourth column of a table. */
#include <math.h>
#include <stdio.h>

int main(void)
{
	double x, y, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
	int n = 0;
	char line[256];

	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "%*f,%*f,%lf,%lf", &x, &y) != 2)
			continue;
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		syy += y * y;
		sxy += x * y;
	}
	if (n < 2)
		return 1;
	printf("%d flowers, r = %.4f\n", n,
	       (n * sxy - sx * sy) / sqrt((n * sxx - sx * sx) * (n * syy - sy * sy)));
	return 0;
}

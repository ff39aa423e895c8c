"""Examples of the help texts: commands, and the first lines of their output.

Text after "..." is left out.
"""

_A = "# a.zarr holds 3 1 4 1 5 9"
_A_AND_B = f"{_A}, and b.zarr 2 7 1 8 2 8"
_X = "# x.zarr holds 2**0 to 2**99"
_FIELD = "# f.zarr holds 1 2 3 4 modulo 17 and 97"

EXAMPLES = {
    "random": """
$ rnsdask random r.zarr --count 1e6 --bits 256 --seed 1
r.zarr: 1000000 random integers, ...
""",
    "import": """
$ printf '12\\n34\\n5600000000000000000000\\n' > numbers.txt
$ rnsdask import numbers.txt n.zarr
n.zarr: 3 integers, ...
# of a file of OEIS, whose second column has the terms
$ rnsdask import b000041.txt partitions.zarr --column 2
""",
    "moduli": """
$ rnsdask moduli --bits 64
# ModuliSet([4294967296, 4294967295, 4294967293])
4294967296
4294967295
4294967293
""",
    "doctor": f"""
$ rnsdask doctor | grep extension
ok       extension         compiled, ...
{_X}
$ rnsdask doctor x.zarr | grep x.zarr
ok       store             x.zarr: ...
""",
    "info": """
$ rnsdask info x.zarr
store      ...
integers   100
moduli     ModuliSet(5 moduli of 32 bits, M of 160 bits)
range      unsigned, 0 to M-1; holds results of 159 bits
magnitude  at most 100 bits
chunks     1 of 100 integers, 2 kB each
""",
    "head": f"""
{_X}
$ rnsdask head x.zarr -n 3
0       1
1       2
2       4
""",
    "stats": f"""
{_A}
$ rnsdask stats a.zarr
count  6
min    1
max    9
sum    23
mean   3.83

bits
1  2 ###################################
2  1 #################
3  2 ###################################
4  1 #################
""",
    "hist": f"""
{_A}
$ rnsdask hist a.zarr --edges 0,3,6,9
[0, 3)  2 ####################
[3, 6)  3 ##############################
[6, 9]  1 ##########
""",
    "verify": """
$ rnsdask verify x.zarr
x.zarr: 100 integers, whole and valid ...
""",
    "compare": f"""
{_A_AND_B}
$ rnsdask compare a.zarr b.zarr
a.zarr against b.zarr: 6 integers
2 less, 0 equal, 4 greater
first difference at index 0
""",
    "eval": f"""
{_A_AND_B}
$ rnsdask eval "a*b + 1" a=a.zarr b=b.zarr -o c.zarr --max --sum
max of 6 values at index 5:
73
sum of 6 values:
113
c.zarr: 6 values, ...
$ rnsdask eval -e "s=a+b" -e "p=s*s" a=a.zarr b=b.zarr -o s=s.zarr --max p
max of p, 6 values at index 5:
289
""",
    "max": f"""
{_X}
$ rnsdask max x.zarr
max of 100 integers at index 99:
633825300114114700748351602688
""",
    "min": f"""
{_X}
$ rnsdask min x.zarr
min of 100 integers at index 0:
1
""",
    "sum": f"""
{_X}
$ rnsdask sum x.zarr
sum of 100 integers:
1267650600228229401496703205375
""",
    "gcd": f"""
{_A}
$ rnsdask gcd a.zarr
gcd of 6 integers:
1
""",
    "lcm": f"""
{_A}
$ rnsdask lcm a.zarr
lcm of 6 integers:
180
""",
    "bound": f"""
{_X}
$ rnsdask bound x.zarr
bound of 100 integers, 100 bits:
1267650600228229401496703205375
""",
    "prod": f"""
{_A}
$ rnsdask prod a.zarr
prod of 6 integers:
540
""",
    "topk": f"""
{_A}
$ rnsdask topk 3 a.zarr
5       9
4       5
2       4
""",
    "filter": f"""
{_A}
$ rnsdask filter a.zarr "x > 3" -o big.zarr
big.zarr: 3 values, ...
$ rnsdask head big.zarr
0       4
1       5
2       9
""",
    "where": f"""
{_A}
$ rnsdask eval "a > 3" a=a.zarr -o mask.zarr
mask.zarr: 6 values, ...
$ rnsdask where mask.zarr
2
4
5
""",
    "group": f"""
{_A}, and parity.txt odd odd even odd odd odd
$ rnsdask group a.zarr --by parity.txt
even    4
odd     19
""",
    "sort": f"""
{_A}
$ rnsdask sort a.zarr -o sorted.zarr
$ rnsdask head sorted.zarr -n 3
0       1
1       1
2       3
""",
    "cumsum": f"""
{_A}
$ rnsdask cumsum a.zarr -o sums.zarr
$ rnsdask head sums.zarr -n 3
0       3
1       4
2       8
""",
    "cummax": f"""
{_A}
$ rnsdask cummax a.zarr -o maxima.zarr
$ rnsdask head maxima.zarr -n 3
0       3
1       3
2       4
""",
    "cummin": f"""
{_A}
$ rnsdask cummin a.zarr -o minima.zarr
$ rnsdask head minima.zarr -n 3
0       3
1       1
2       1
""",
    "powmod": f"""
{_A}
$ rnsdask convert a.zarr -o limbs.zarr --to positional --bits 128
$ rnsdask powmod limbs.zarr 65537 1009 -o powers.zarr
$ rnsdask head powers.zarr -n 3
0       271
1       1
2       523
""",
    "batchgcd": f"""
{_A}
$ rnsdask convert a.zarr -o keys.zarr --to positional --bits 128
$ rnsdask batchgcd keys.zarr -o shared.zarr
$ rnsdask head shared.zarr -n 3
0       3
1       1
2       1
""",
    "det": """
# m.zarr holds the matrix 2 1; 1 3
$ rnsdask det m.zarr
det of m.zarr:
5
""",
    "rank": """
# m.zarr holds the matrix 2 1; 1 3
$ rnsdask rank m.zarr
rank of m.zarr:
2
""",
    "charpoly": """
# m.zarr holds the matrix 2 1; 1 3: its polynomial is z**2 - 5*z + 5
$ rnsdask charpoly m.zarr
0       5
1       -5
2       1
""",
    "rref": """
# w.zarr holds the matrix 1 2 3; 2 4 7, with pivots in the columns 0 and 2
$ rnsdask rref w.zarr
0,0     1
0,1     2
0,2     0
1,0     0
1,1     0
1,2     1
""",
    "nullspace": """
# w.zarr holds the matrix 1 2 3; 2 4 7, which takes -2 1 0 to 0
$ rnsdask nullspace w.zarr
0,0     -2
1,0     1
2,0     0
""",
    "solve": """
# m.zarr holds the matrix 2 1; 1 3, and v.zarr the vector 1 1
$ rnsdask solve m.zarr v.zarr
0       2/5
1       1/5
""",
    "resultant": """
# p.zarr holds -1 0 1, which is x**2 - 1, and q.zarr -2 1, which is x - 2
$ rnsdask resultant p.zarr q.zarr
resultant of p.zarr:
3
""",
    "convolve": f"""
{_A_AND_B}
$ rnsdask convolve a.zarr b.zarr -o product.zarr
$ rnsdask head product.zarr -n 3
0       6
1       23
2       18
""",
    "ntt": f"""
{_FIELD}
$ rnsdask ntt f.zarr -o transform.zarr
transform.zarr: 4 elements, ...
$ rnsdask ntt transform.zarr -o same.zarr --inverse
""",
    "export": f"""
{_A}
$ rnsdask export a.zarr a.npy
a.npy: 6 integers, ...
$ rnsdask export a.zarr - | head -3
3
1
4
""",
    "convert": """
$ rnsdask convert a.zarr -o wide.zarr --to positional --bits 4096
wide.zarr: 6 integers, ...
""",
    "extend": f"""
{_X}
$ rnsdask extend x.zarr -o squares.zarr --bits 200
squares.zarr: 100 integers, ...
""",
    "shrink": """
$ rnsdask shrink x.zarr -o narrow.zarr --bits 112
narrow.zarr: 100 integers, ...
""",
    "slice": f"""
{_A}
$ rnsdask slice a.zarr 2:5 -o part.zarr
$ rnsdask head part.zarr
0       4
1       1
2       5
""",
    "concat": f"""
{_A_AND_B}
$ rnsdask concat a.zarr b.zarr -o both.zarr
both.zarr: 12 integers, ...
""",
    "reshape": f"""
{_A}
$ rnsdask reshape a.zarr 2,-1 -o rows.zarr
$ rnsdask head rows.zarr -n 4
0,0     3
0,1     1
0,2     4
1,0     1
""",
    "rechunk": """
$ rnsdask rechunk a.zarr -o short.zarr --chunks 2
$ rnsdask info short.zarr | grep chunks
chunks     3 of 2 integers, 40 bytes each
""",
    "kernels": """
$ rnsdask kernels list
compiled  ...
""",
}

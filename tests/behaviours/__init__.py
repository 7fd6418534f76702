"""What a Temporal-compatible server answers, asked over raw gRPC of any address.

The numbers in the test names (`test_b07_...`) are those of the project's list of behaviours that users were bitten by.
With TINYTEMPORAL_BEHAVIOURS_ADDRESS set the tests ask that server, which is how they are proven against the official
development server; without it they ask a live server of this project, once for each database.
"""

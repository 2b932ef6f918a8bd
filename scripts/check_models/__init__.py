# SPDX-License-Identifier: Apache-2.0
"""What scripts/check-models is made of."""

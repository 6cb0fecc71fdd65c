"""ID3 and C4.5: multiway trees and rules."""

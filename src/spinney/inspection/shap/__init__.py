"""SHAP values: exact for trees and linear models, sampled for others."""
